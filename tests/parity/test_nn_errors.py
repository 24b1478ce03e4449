"""What modules refuse, they refuse with PyTorch's error classes and, where users see them often, its messages."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def model(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("b", lib.ones(2))
            self.l = lib.nn.Linear(2, 2)

    return Net()


def uninitialised(lib: Any, value: Callable[[], Any]) -> Any:
    class Late(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.x = value()

    return Late()


SAME_MESSAGE: dict[str, Callable[[Any], Any]] = {
    "no attribute": lambda t: model(t).foo,
    "module by int": lambda t: setattr(model(t), "l", 3),
    "parameter by tensor": lambda t: setattr(model(t).l, "weight", t.ones(2)),
    "buffer by int": lambda t: setattr(model(t), "b", 3),
    "parameter with a dot": lambda t: model(t).register_parameter("a.b", None),
    "parameter without a name": lambda t: model(t).register_parameter("", None),
    "parameter with a taken name": lambda t: model(t).register_parameter("l", None),
    "parameter with a name that is no string": lambda t: model(t).register_parameter(3, None),
    "parameter that is a tensor": lambda t: model(t).register_parameter("z", t.ones(2)),
    "parameter that was computed": lambda t: model(t).register_parameter("z", t.nn.Parameter(t.ones(2)) * 2),
    "buffer with a dot": lambda t: model(t).register_buffer("a.b", None),
    "buffer without a name": lambda t: model(t).register_buffer("", None),
    "buffer with a taken name": lambda t: model(t).register_buffer("l", None),
    "buffer with a name that is no string": lambda t: model(t).register_buffer(3, None),
    "buffer that is an int": lambda t: model(t).register_buffer("z", 3),
    "module with a dot": lambda t: model(t).add_module("a.b", None),
    "module without a name": lambda t: model(t).add_module("", None),
    "module with a taken name": lambda t: model(t).add_module("b", None),
    "module with a name that is no string": lambda t: model(t).add_module(3, None),
    "module that is an int": lambda t: model(t).add_module("z", 3),
    "no submodule": lambda t: model(t).get_submodule("x.y"),
    "submodule that is a buffer": lambda t: model(t).get_submodule("b"),
    "no parameter": lambda t: model(t).get_parameter("l.x"),
    "parameter that is a buffer": lambda t: model(t).get_parameter("b"),
    "buffer that is a parameter": lambda t: model(t).get_buffer("l.weight"),
    "no buffer": lambda t: model(t).get_buffer("l.w"),
    "set nowhere": lambda t: model(t).set_submodule("", t.nn.Linear(1, 1)),
    "set an int": lambda t: model(t).set_submodule("l", 3),
    "set strictly": lambda t: model(t).set_submodule("q", t.nn.Linear(1, 1), strict=True),
    "set below nothing": lambda t: model(t).set_submodule("q.r", t.nn.Linear(1, 1)),
    "to an integer dtype": lambda t: model(t).to(t.int32),
    "no forward": lambda t: model(t)(1),
    "pre-hook that returns nonsense": lambda t: (
        m := model(t),
        m.register_forward_pre_hook(lambda *_: 3, with_kwargs=True),
        m(1),
    ),
    "arguments": lambda t: t.nn.Module(3),
    "keyword": lambda t: t.nn.Module(a=3),
    "module before init": lambda t: uninitialised(t, lambda: t.nn.Linear(1, 1)),
    "parameter before init": lambda t: uninitialised(t, lambda: t.nn.Parameter(t.ones(1))),
    "wrong keys": lambda t: model(t).load_state_dict({"l.weight": t.ones(3, 2), "zz": 1, "l.q": 2, "l.bias": 3}),
    "missing keys": lambda t: t.nn.Sequential(model(t)).load_state_dict({}),
    "shapes": lambda t: model(t).load_state_dict({"b": t.ones(()), "l.weight": t.ones(4), "l.bias": t.ones(2)}),
    "state_dict that is a list": lambda t: model(t).load_state_dict([1]),
    "index of a Sequential": lambda t: t.nn.Sequential(t.nn.ReLU())[1],
    "index of a ModuleList": lambda t: t.nn.ModuleList()[0],
    "extend a ModuleList by an int": lambda t: t.nn.ModuleList().extend(3),
    "add to a Sequential": lambda t: t.nn.Sequential().__add__([1]),
    "update a ModuleDict by an int": lambda t: t.nn.ModuleDict().update(3),
    "update a ModuleDict by triples": lambda t: t.nn.ModuleDict().update([("a", "b", "c")]),
    "extend a ParameterList by a tensor": lambda t: t.nn.ParameterList().extend(3),
    "dropout": lambda t: t.nn.Dropout(2),
    "shape of a lazy parameter": lambda t: t.nn.UninitializedParameter().shape,
    "unknown gain": lambda t: t.nn.init.calculate_gain("nothing"),
    "fan of a vector": lambda t: t.nn.init.xavier_uniform_(t.ones(2)),
    "unknown padding side": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2)], padding_side="up"),
    "parametrization of nothing": lambda t: t.nn.utils.parametrize.register_parametrization(
        t.nn.ReLU(), "x", t.nn.ReLU()
    ),
    "tied": lambda t: t.func.functional_call(model(t), {"nothing": t.ones(2)}, (1,), strict=True),
}

SAME_CLASS: dict[str, Callable[[Any], Any]] = {
    "multiply a Sequential": lambda t: t.nn.Sequential() * 0,
    "no attribute to delete": lambda t: delattr(model(t), "nope"),
    "buffer before init": lambda t: uninitialised(t, lambda: t.nn.Buffer(t.ones(1))),
    "parameters before init": lambda t: list(t.nn.Module.__new__(t.nn.Module).parameters()),
    "mode": lambda t: model(t).train(3),
    "to nonsense": lambda t: model(t).to(3, 4, 5),
    "integer parameter": lambda t: t.nn.Parameter(t.ones(2, dtype=t.int64)),
    "groups": lambda t: t.nn.Conv2d(3, 4, 1, groups=2),
    "no groups": lambda t: t.nn.Conv2d(3, 4, 1, groups=0),
    "padding string": lambda t: t.nn.Conv2d(3, 4, 1, padding="some"),
    "strided same padding": lambda t: t.nn.Conv2d(3, 4, 1, padding="same", stride=2),
    "padding mode": lambda t: t.nn.Conv2d(3, 4, 1, padding_mode="some"),
    "transposed padding mode": lambda t: t.nn.ConvTranspose2d(3, 4, 1, padding_mode="reflect"),
    "batch norm of a vector": lambda t: t.nn.BatchNorm1d(3)(t.ones(3)),
    "batch norm 2d of 3d": lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3, 4)),
    "groups of GroupNorm": lambda t: t.nn.GroupNorm(2, 3),
    "padding index": lambda t: t.nn.Embedding(3, 2, padding_idx=3),
    "heads": lambda t: t.nn.MultiheadAttention(5, 2),
    "cutoffs": lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2]),
    "rnn nonlinearity": lambda t: t.nn.RNN(2, 3, nonlinearity="sin"),
    "rnn projection": lambda t: t.nn.GRU(2, 3, proj_size=2),
    "lstm projection": lambda t: t.nn.LSTM(2, 3, proj_size=3),
    "rnn dropout": lambda t: t.nn.LSTM(2, 3, dropout=2),
    "rnn input": lambda t: t.nn.GRU(2, 3)(t.ones(2)),
    "rnn state": lambda t: t.nn.GRU(2, 3)(t.ones(4, 1, 2), t.ones(1, 2, 3)),
    "rnn unbatched state": lambda t: t.nn.GRU(2, 3)(t.ones(4, 2), t.ones(1, 1, 3)),
    "cell input": lambda t: t.nn.GRUCell(2, 3)(t.ones(1, 1, 2)),
    "cell state": lambda t: t.nn.LSTMCell(2, 3)(t.ones(1, 2), (t.ones(1, 4), t.ones(1, 3))),
    "unsorted lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2), [1, 2]),
    "no length": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2), [2, 0]),
    "too few lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2), [2]),
    "total length": lambda t: t.nn.utils.rnn.pad_packed_sequence(
        t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2), [3, 1]), total_length=2
    ),
    "nonfinite norm": lambda t: clip_nan(t),
    "both kinds of backward hooks": lambda t: (
        m := model(t),
        m.register_backward_hook(print),
        m.register_full_backward_hook(print),
    ),
    "insert a string": lambda t: t.nn.Sequential().insert(0, "a"),
    "index of a ParameterList": lambda t: t.nn.ParameterList()[0],
    "delete from a ModuleDict": lambda t: t.nn.ModuleDict({"a": t.nn.ReLU()}).pop("b"),
    "call a ParameterList": lambda t: t.nn.ParameterList()(),
    "unflatten": lambda t: t.nn.Unflatten(1, 3),
    "softmax2d": lambda t: t.nn.Softmax2d()(t.ones(2)),
    "fractional": lambda t: t.nn.FractionalMaxPool2d(2),
    "two fractions": lambda t: t.nn.FractionalMaxPool2d(2, 3, 0.5),
    "margin": lambda t: t.nn.TripletMarginLoss(margin=0),
    "loss of p": lambda t: t.nn.MultiMarginLoss(p=3),
    "vector of parameters": lambda t: t.nn.utils.vector_to_parameters([1.0], []),
    "weight norm twice": lambda t: t.nn.utils.weight_norm(t.nn.utils.weight_norm(t.nn.Linear(2, 2))),
    "no weight norm": lambda t: t.nn.utils.remove_weight_norm(t.nn.Linear(2, 2)),
    "no spectral norm": lambda t: t.nn.utils.remove_spectral_norm(t.nn.Linear(2, 2)),
    "identity of a vector": lambda t: t.nn.init.eye_(t.ones(2)),
    "dirac of a matrix": lambda t: t.nn.init.dirac_(t.ones(2, 2)),
    "orthogonal vector": lambda t: t.nn.init.orthogonal_(t.ones(2)),
    "sparse vector": lambda t: t.nn.init.sparse_(t.ones(2), 0.1),
    "lazy input": lambda t: t.nn.LazyConv2d(2, 2)(t.ones(2)),
    "transformer batch": lambda t: t.nn.Transformer(4, 2, 1, 1, 4, batch_first=True)(t.ones(2, 3, 4), t.ones(1, 3, 4)),
    "transformer activation": lambda t: t.nn.TransformerEncoderLayer(4, 2, activation="tanh"),
}


def clip_nan(lib: Any) -> None:
    p = lib.nn.Parameter(lib.ones(2))
    p.grad = lib.full((2,), float("nan"))
    lib.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def raised(lib: Any, act: Callable[[Any], Any]) -> Any:
    try:
        act(lib)
    except Exception as error:
        return type(error), str(error)
    return None, "nothing was raised"


@pytest.mark.filterwarnings("ignore::Warning:torch")
@pytest.mark.parametrize("name", SAME_MESSAGE)
def test_message(name: str) -> None:
    want, got = raised(torch, SAME_MESSAGE[name]), raised(rushlight, SAME_MESSAGE[name])
    assert want[0] is not None
    assert got == want


@pytest.mark.filterwarnings("ignore::Warning:torch")
@pytest.mark.parametrize("name", SAME_CLASS)
def test_class(name: str) -> None:
    want, got = raised(torch, SAME_CLASS[name]), raised(rushlight, SAME_CLASS[name])
    assert want[0] is not None
    assert got[0] is want[0], (got, want)


def test_incompatible_keys() -> None:
    for lib in (torch, rushlight):
        m = model(lib)
        assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
        found = m.load_state_dict(OrderedDict({"l.weight": lib.ones(2, 2), "x": lib.ones(2)}), strict=False)
        assert repr(found) == "_IncompatibleKeys(missing_keys=['b', 'l.bias'], unexpected_keys=['x'])"
        assert found.missing_keys == ["b", "l.bias"]
