"""Methods and attributes that few programs ask for: there, with PyTorch's answers and refusals on the CPU."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import refused

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def warned(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message)) for w in said]


def generator(t: Any) -> Any:
    g = t.Generator()
    return [refused(lambda n=n, a=a: getattr(g, n)(*a)) for n, a in
            (("get_offset", ()), ("set_offset", (1,)), ("graphsafe_get_state", ()), ("graphsafe_set_state", (g,)))]  # fmt: skip


def tensors(t: Any) -> Any:
    x = t.ones(2)
    return x.volatile, refused(lambda: x.reinforce(1)), refused(lambda: x.record_stream(None))


def dtypes(t: Any) -> Any:
    names = ("float16 bfloat16 float32 float64 complex32 complex64 complex128 bool uint8 int8 int16 int32 int64 uint16 float8_e4m3fn "
             "float8_e5m2")  # fmt: skip
    return [getattr(t, name).abbr for name in names.split()]


def recurrent(t: Any) -> Any:
    lstm, rnn = t.nn.LSTM(2, 3, num_layers=2, proj_size=1), t.nn.RNN(2, 3)
    h, order = t.arange(6.0).view(1, 2, 3), t.tensor([1, 0])
    return (tuple(lstm.get_expected_cell_size(t.ones(4, 5, 2), None)), tuple(lstm.get_expected_hidden_size(t.ones(4, 5, 2), None)),
            [p.tolist() for p in lstm.permute_hidden((h, h + 1), order)], rnn.permute_hidden(h, order).tolist(),
            rnn.permute_hidden(h, None) is h)  # fmt: skip


def modules(t: Any) -> Any:
    return [refused(getattr(t.nn.Linear(1, 1), name)) for name in ("ipu", "xpu", "mtia")]


def datasets(t: Any) -> Any:
    data = importlib.import_module(f"{t.__name__}.utils.data").ConcatDataset([[1, 2], [3]])
    return data.cumsum([[1], [2, 3]]), data.cummulative_sizes, warned(lambda: data.cummulative_sizes)


def optimizers(t: Any) -> Any:
    own = t.optim.Optimizer
    return (
        own.profile_hook_step(lambda self: 3)(t.optim.SGD([t.ones(1)], 0.1)),
        hasattr(own, "OptimizerPreHook"),
        hasattr(own, "OptimizerPostHook"),
    )


def modes(t: Any) -> Any:
    class Mode(t.overrides.TorchFunctionMode):
        pass

    return isinstance(Mode.push(), Mode), warned(Mode.push)


CASES = [generator, tensors, dtypes, recurrent, modules, datasets, optimizers, modes]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_members_answer_as_pytorchs(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)
