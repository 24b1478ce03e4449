"""`torch.overrides.redispatch_function` asks for what a function calls, not for itself."""

from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def calls(t: Any) -> list[Any]:
    """What was asked for, and of what class results are."""
    log: list[Any] = []

    class Told(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return t.overrides.redispatch_function(func, types, args, kwargs)

    class Mode(t.overrides.TorchFunctionMode):
        def __init__(self, again: bool):
            self.again = again

        def __torch_function__(self, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
            log.append(f"mode {func.__name__}")
            if not self.again:
                return t.overrides.redispatch_function(func, types, args, kwargs)
            with self:
                return t.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a: Any, b: Any) -> Any:
        if t.overrides.has_torch_function((a, b)):
            return t.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x, y, a, b = Told(t.ones(2)), Told(t.ones(2)), t.ones(2), t.ones(2)
    for run in (scaled, lambda p, q: p * q, lambda p, q: t.stack([p, q]), lambda p, q: p.shape, t.nn.functional.linear):
        log.append(type(run(x, y)).__name__)
        log.append(scaled(a, b).tolist())
        for again in (False, True):
            with Mode(again):
                log.append(type(run(a, b)).__name__)
            with Mode(again), Mode(not again):
                log.append(type(run(a, b)).__name__)
    return log


def test_is_as_in_torch() -> None:
    assert calls(rushlight) == calls(torch)


def test_a_function_that_fails_leaves_nothing_behind() -> None:
    redispatch, asks = rushlight.overrides.redispatch_function, rushlight.overrides.has_torch_function
    with pytest.raises(ZeroDivisionError):
        redispatch(lambda: 1 / 0, (), ())
    with rushlight.overrides.TorchFunctionMode():
        assert asks(())
