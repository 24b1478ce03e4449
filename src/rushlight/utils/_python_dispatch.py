"""Modes that see every operator as it runs, below the functions that call it and in the backward pass as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.state import Setting, modes, set_mode
from rushlight.dispatch import call
from rushlight.dispatch.compute import compute
from rushlight.levels import Level
from rushlight.ops.python import aten
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op

__all__ = ["TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """A context in which each operator that gets tensors is handed to `__torch_dispatch__(func, types, args, kwargs)`.

    func: the operator, as ``torch.ops.aten`` has it; called with these arguments, or with other operands, it runs below
    this mode.  types: empty.  What the method returns is the operator's result; the graph is made around it, so gradients
    flow whatever it did: they are those of the operator at the operands that were handed.  Backward runs in the same way
    while the mode is active.  Operators are rushlight's: `linear` is one, where PyTorch shows ``aten.t`` and
    ``aten.addmm``, and what makes tensors of nothing (`zeros`, `randn`) is not seen.  Modes nest: the innermost comes
    first, and what it calls is handed to those around it.

    >>> import rushlight as torch
    >>> from rushlight.utils._python_dispatch import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(3, requires_grad=True)
    >>> with Names():
    ...     y = (x * 2).sin()
    aten.mul.Tensor
    aten.sin.default
    """

    def __init__(self, _dispatch_key: Any = None):
        self._levels: list[tuple[Any, ...]] = []

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What an operator gives, in the words of a subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__(self, func, types, args, kwargs)")

    def __enter__(self) -> Self:
        self.__dict__.setdefault("_levels", []).append(modes.levels)  # a subclass need not call our __init__
        set_mode("levels", (*modes.levels, Dispatching(self)))
        return self

    def __exit__(self, *error: object) -> None:
        set_mode("levels", self._levels.pop())

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """A mode made of the arguments, to be entered."""
        return cls(*args, **kwargs)


class Dispatching(Level):
    """The level of a mode."""

    def __init__(self, mode: TorchDispatchMode):
        self.mode = mode

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input is a tensor."""
        return any(isinstance(x, Tensor) for x in flat)

    def below(self) -> Setting:
        """A context of the levels around this one."""
        levels = modes.levels
        return Setting("levels", levels[: levels.index(self)] if self in levels else levels)

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Hand `op` to the mode, and put what it gives into the graph."""
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        running = Running(op, (*inputs, *statics), len(inputs))
        with self.below():
            if any(level.owns(flat) for level in modes.levels):
                return self.handled(running)
            with Setting("grad", False):
                given = self.handled(running)
            results = tuple(fresh(x, flat) for x in (given if isinstance(given, tuple | list) else (given,)))
            return call.deliver(op, flat, statics, results, self.kept(running, flat, statics))

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Hand the in-place form of `op` to the mode."""
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        with self.below():
            return self.handled(Running(op, (*inputs, *statics), len(inputs), True))

    def handled(self, running: Running) -> Any:
        """What the mode gives."""
        aten.handed.calls.append(running)
        try:
            return self.mode.__torch_dispatch__(running.overload, (), running.args, {})
        finally:
            aten.handed.calls.pop()

    def kept(self, running: Running, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the formulas of the operator need beside its results: made again where the mode did not run it."""
        op = running.op
        if not op.aux or not modes.grad or not call.edges_of(op, flat)[0]:
            return ()
        return compute(op, call.arrays_of(op, flat)[0], statics)[1] if running.aux is None else running.aux


class Running:
    """A call that a mode is handed.

    count: how many of the arguments are operands; the others say how it runs.
    """

    def __init__(self, op: Op, args: tuple[Any, ...], count: int, inplace: bool = False):
        self.op, self.args, self.count, self.inplace = op, args, count, inplace
        self.overload = aten.overload_of(op, inplace)
        self.aux: tuple[Any, ...] | None = None

    def takes(self, overload: aten.Overload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether arguments are those of this call, its operands apart: others are those of the overload."""
        if overload is not self.overload or kwargs or len(args) != len(self.args):
            return False
        return all(x is y for x, y in zip(args[self.count :], self.args[self.count :], strict=True))

    def run(self, *args: Any) -> Any:
        """What the operator gives, below the mode."""
        op, inputs, statics = self.op, args[: self.count], args[self.count :]
        if self.inplace:
            return call.apply_inplace(op, inputs, statics)
        if modes.levels or modes.grad:
            return call.apply(op, inputs, statics)
        outs, aux = compute(op, call.arrays_of(op, call.flatten(op, inputs))[0], statics)
        if all(x is y for x, y in zip(inputs, self.args, strict=False)):  # formulas see the operands that were handed
            self.aux = aux
        results = tuple(wrap(x) for x in outs)
        return results[0] if op.out_count == 1 else results


def fresh(x: Tensor, flat: tuple[Any, ...]) -> Tensor:
    """A result that may get a place in the graph: one that is there already is seen through a view."""
    return wrap(x._array) if x._edge is not None or any(x is given for given in flat) else x


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is made of others that it shows to a tracer: none is."""
    return False


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active."""
    return _get_current_dispatch_mode() is not None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The active modes, the innermost last."""
    return [level.mode for level in modes.levels if isinstance(level, Dispatching)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


@contextmanager
def _disabled() -> Iterator[list[TorchDispatchMode]]:
    stack = _get_current_dispatch_mode_stack()
    with Setting("levels", tuple(level for level in modes.levels if not isinstance(level, Dispatching))):
        yield stack


def _disable_current_modes() -> AbstractContextManager[list[TorchDispatchMode]]:
    """A context without modes; it gives those that are set aside."""
    return _disabled()
