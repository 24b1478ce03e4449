"""Modes that see every operator as it runs, below the functions that call it and in the backward pass as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from rushlight.basics.state import Setting, modes, set_mode, special
from rushlight.dispatch import call
from rushlight.dispatch.declare import Op
from rushlight.levels import Level
from rushlight.ops.python.classes import NOBODY, leaves
from rushlight.ops.python.handing import Call, composed, handed, kinds, named, refused, unrecorded
from rushlight.tensor import Tensor

__all__ = ["TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
           "return_and_correct_aliasing", "transform_subclass"]  # fmt: skip


class TorchDispatchMode:
    """A context in which each operator that gets tensors is handed to `__torch_dispatch__(func, types, args, kwargs)`.

    func: the operator, as ``torch.ops.aten`` has it, with PyTorch's arguments; called with these, or with other operands, it
    runs below this mode.  types: the classes with ``__torch_dispatch__`` among the operands, which are asked after the mode.
    What the method returns is the operator's result, NotImplemented where those around are to give it; the graph is made
    around it, so gradients flow whatever it did: they are those of the operator at the operands that were handed.  Backward
    runs in the same way while the mode is active.  What PyTorch has no operator for is of the namespace `rushlight`, and what
    makes tensors of nothing (`zeros`, `randn`) is not seen.  Modes nest: the innermost comes first, and what it calls is
    handed to those around it.

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

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None):
        self._levels: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """What an operator gives, in the words of a subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__(self, func, types, args, kwargs)")

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether what is compiled may run without this mode: a subclass may say so."""
        return False

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is one of a compiler's own."""
        return False

    def __enter__(self) -> Self:
        self.__dict__.setdefault("_levels", []).append(modes.levels)  # a subclass need not call our __init__
        set_mode("levels", (*modes.levels, Dispatching(self)))
        return self

    def __exit__(self, *error: object) -> None:
        set_mode("levels", self._levels.pop())

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> Self:
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

    def handed_as(self, name: str, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """As `apply`, under a name of PyTorch's with the inputs alone."""
        return self.apply(op, flat, statics, (name, flat, {}))

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], known: Any = None) -> Any:
        """Hand `op` to the mode, and put what it gives into the graph; or those that PyTorch has in its place."""
        found = composed(op, flat, statics) if known is None else NotImplemented
        if found is not NotImplemented:
            return found
        running = Call(op, flat, statics, False, known)
        with self.below():
            if any(level.owns(flat) for level in modes.levels if level is not special.classes):
                given = self.handled(running)
                return call.apply(op, running.inputs, statics) if given is NotImplemented else given
            with unrecorded():
                given = self.handled(running)
                if given is NotImplemented:
                    given = self.passed_on(running, flat)
            return running.finished(given)

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Hand the in-place form of `op` to the mode."""
        running = Call(op, flat, statics, True)
        with self.below():
            given = self.handled(running)
            if given is NotImplemented:
                self.refuse_alone(running, flat)
                return call.apply_inplace(op, running.inputs, statics)
            return given

    def handled(self, running: Call) -> Any:
        """What the mode gives."""
        return running.handed(self.mode.__torch_dispatch__, tuple(kinds(running.flat)))

    def told(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the mode gives for what is no operator here, as `detach`; those around it where it has no answer."""
        with self.below():
            types = tuple(kinds(leaves((args, kwargs))))
            given = handed(NOBODY, self.mode.__torch_dispatch__, named(name), types, args, kwargs)
            return special.classes.called(name, *args, **kwargs) if given is NotImplemented else given

    def passed_on(self, running: Call, flat: tuple[Any, ...]) -> Any:
        """What those around it give where the mode has no answer."""
        self.refuse_alone(running, flat)
        return call.apply(running.op, running.inputs, running.statics)

    def refuse_alone(self, running: Call, flat: tuple[Any, ...]) -> None:
        """Raise TypeError where a mode has no answer, and there is nobody else to ask."""
        if not any(level.owns(flat) for level in modes.levels):
            raise refused(running.overload, [self.mode])


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor is made of others that it shows: its class has `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, Tensor) and type(t) is not Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """As `is_traceable_wrapper_subclass`, of a class."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A tensor of the same class, made of what `callback(name, part)` gives for each of the tensors that it is made of.

    outer_size, outer_stride: of the whole, default: as they are.  Raises RuntimeError where the class gives another size.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    found = type(t).__tensor_unflatten__(parts, context, size, stride)
    if tuple(found.size()) != tuple(size):
        raise RuntimeError(
            f"transform_subclass: {type(t).__name__}.__tensor_unflatten__ gave a tensor of size {list(found.size())}, "
            f"expected {list(size)}, which it was given as outer_size"
        )
    return found


def return_and_correct_aliasing(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None, out: object
) -> Any:
    """What `__torch_dispatch__` of a class is to return for `out`, what it made: the argument that an operator in place changes.

    func: an overload, or an operator of `torch.library`, with its args and kwargs.
    """
    name, given = str(getattr(func, "_opname", "")), kwargs or {}
    if "out" in given:
        return given["out"]
    changes = (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name.endswith("__"))
    return args[0] if changes and args and isinstance(args[0], Tensor) else out


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active."""
    return _get_current_dispatch_mode() is not None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The active modes, the innermost last."""
    return [level.mode for level in modes.levels if isinstance(level, Dispatching)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def _push_mode(mode: TorchDispatchMode) -> None:
    """Let a mode be the innermost of this thread."""
    TorchDispatchMode.__enter__(mode)


def _pop_mode(k: object = None) -> TorchDispatchMode:
    """Take the innermost mode of this thread away, and return it.  Raises RuntimeError where there is none."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise RuntimeError("this thread is in no TorchDispatchMode, of which one could be taken away")
    TorchDispatchMode.__exit__(mode)
    return mode


@contextmanager
def _pop_mode_temporarily(k: object = None) -> Iterator[TorchDispatchMode]:
    """A context without the innermost mode, which it gives."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is active that would have a compiler keep off: any that does not say otherwise."""
    return any(not mode.ignore_compile_internals() for mode in _get_current_dispatch_mode_stack())


@contextmanager
def _disabled() -> Iterator[list[TorchDispatchMode]]:
    stack = _get_current_dispatch_mode_stack()
    with Setting("levels", tuple(level for level in modes.levels if not isinstance(level, Dispatching))):
        yield stack


def _disable_current_modes() -> AbstractContextManager[list[TorchDispatchMode]]:
    """A context without modes; it gives those that are set aside."""
    return _disabled()
