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

    func: the operator, whose `str` is ``aten.NAME.OVERLOAD``; called, it runs below this mode.  types: empty.  What the
    method returns is the operator's result; the graph is made around it, so gradients flow whatever it did.  Backward
    runs in the same way while the mode is active.  Operators are rushlight's: `linear` is one, where PyTorch shows
    ``aten.t`` and ``aten.addmm``, and what makes tensors of nothing (`zeros`, `randn`) is not seen.  Modes nest: the
    innermost comes first, and what it calls is handed to those around it.

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
        with self.below():
            if any(level.owns(flat) for level in modes.levels):
                return self.handed(Running(op), (*inputs, *statics))
            running = Running(op, inputs, statics)
            with Setting("grad", False):
                given = self.handed(running, (*inputs, *statics))
            results = tuple(fresh(x, flat) for x in (given if isinstance(given, tuple | list) else (given,)))
            return call.deliver(op, flat, statics, results, self.kept(running, flat, statics))

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Hand the in-place form of `op` to the mode."""
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        with self.below():
            return self.handed(Running(op, inplace=True), (*inputs, *statics))

    def handed(self, running: Running, args: tuple[Any, ...]) -> Any:
        """What the mode gives."""
        return self.mode.__torch_dispatch__(running, (), args, {})

    def kept(self, running: Running, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the formulas of the operator need beside its results: made again where the mode did not run it."""
        op = running.record
        if not op.aux or not modes.grad or not call.edges_of(op, flat)[0]:
            return ()
        return compute(op, call.arrays_of(op, flat)[0], statics)[1] if running.aux is None else running.aux


class Running(aten.Overload):
    """An operator as a mode gets it: equal to the one of its name in `torch.ops.aten`."""

    def __init__(self, op: Op, inputs: Any = None, statics: tuple[Any, ...] = (), inplace: bool = False):
        seen = aten.overload_of(op, inplace)
        super().__init__(seen.overloadpacket, seen._overloadname)
        self.record, self.inputs, self.statics, self.inplace = op, inputs, statics, inplace
        self.aux: tuple[Any, ...] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, aten.Overload) and other.__name__ == self.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        op = self.record
        inputs, statics = op.bind(args, kwargs)
        if self.inplace:
            return call.apply_inplace(op, inputs, statics)
        if self.inputs is None or modes.levels or modes.grad:
            return call.apply(op, inputs, statics)
        flat = call.flatten(op, inputs)
        outs, self.aux = compute(op, call.arrays_of(op, flat)[0], statics)
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
