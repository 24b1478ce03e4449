"""What PyTorch's own databases of wrong arguments ask messages to say, ours say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tools.fuzzing.databases import drawn

import rushlight

torch = pytest.importorskip("torch")
methods = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="needs PyTorch's database")
modules = pytest.importorskip("torch.testing._internal.common_modules")
pytestmark = pytest.mark.parity

ELSEWHERE = {
    "gather": {7},  # memory that the arguments share is not shared here
    "take": {2},
    "cat": {6, 8},
    "gradient": {3, 10, 17},  # two devices
    "multinomial": {2, 6},  # the words of all functions; more categories are drawn
    "clamp_max": {0},  # PyTorch takes these, too
    "clamp_min": {0},
    "amax": {1, 2, 5},  # NumPy refuses 65 dimensions where they are made; one rule for all out=
    "amin": {1, 2, 5},
    "aminmax": {1, 2},
}


def lifted(value: Any) -> Any:
    """The same here, on the same memory: tensors, dtypes and what holds them."""
    if isinstance(value, torch.Tensor):
        return rushlight.from_numpy(value.detach().numpy())
    if isinstance(value, torch.Size):
        return rushlight.Size(value)
    if isinstance(value, (tuple, list)):
        return type(value)(lifted(v) for v in value)
    if isinstance(value, dict):
        return {k: lifted(v) for k, v in value.items()}
    return getattr(rushlight, str(value).removeprefix("torch.")) if isinstance(value, torch.dtype) else value


def found(name: str) -> Any:
    part: Any = rushlight
    for each in name.split("."):
        part = getattr(part, each, None)
    return part if part is not None else getattr(rushlight.Tensor, name, None)


def operators() -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for op in methods.op_db:
        usual = op.error_inputs_func is not None and not op.name.startswith(("_", "sparse"))
        if usual and getattr(op.op, "__name__", "") != "<lambda>" and found(op.name) is not None:
            chosen.setdefault(op.name, op)
    return chosen


OPERATORS = operators()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_an_operator_refuses_in_words_that_the_database_asks_for(name: str) -> None:
    for i, error in enumerate(drawn(OPERATORS[name].error_inputs, "cpu")):
        sample = error.sample_input
        if i in ELSEWHERE.get(name, ()):
            continue
        args, kwargs = lifted((sample.input, *sample.args)), lifted(sample.kwargs)
        with pytest.raises(Exception, match=error.error_regex) as raised:
            found(name)(*args, **kwargs)
        assert isinstance(raised.value, error.error_type), (i, raised.value)


MODULES = {
    info.name: info
    for info in modules.module_db
    if info.module_error_inputs_func is not None and "BatchNorm" not in info.name  # eps of 0 is no error in evaluation
}


@pytest.mark.filterwarnings("ignore")  # one of the patterns is none of Python's future ones
@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_refuses_in_words_that_the_database_asks_for(name: str) -> None:
    info = MODULES[name]
    for error in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    ):
        given = error.module_error_input
        kind = getattr(rushlight.nn, re.sub(r"^nn\.", "", name))

        def use(given: Any = given, kind: Any = kind) -> None:
            module = kind(*lifted(given.constructor_input.args), **lifted(given.constructor_input.kwargs))
            module(*lifted(given.forward_input.args), **lifted(given.forward_input.kwargs))

        with pytest.raises(error.error_type, match=error.error_regex):
            use()
