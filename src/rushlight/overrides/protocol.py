"""Who is asked before an operator runs: modes of the thread, then the classes of the arguments.

What has ``__torch_function__`` is called as ``__torch_function__(func, types, args, kwargs)`` in place of the function
`func`, which is the public object that was called: ``torch.clone``, ``torch.Tensor.add``, ``torch.Tensor.shape.__get__``.
`public` finds out that there is something to ask; here is whom, in which order, and what becomes of the answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import NoneType, TracebackType
from typing import Any

import numpy as np

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import check_ours, is_theirs
from rushlight.basics.size import Size
from rushlight.basics.state import modes
from rushlight.tensor import Tensor, layout

NOBODY, MODES, ALL = 0, 1, 2  # who is asked in a thread

# Classes of arguments that override nothing.  `plain` is the same while no thread is in a mode, and else empty, so that
# whoever finds an argument's class there needs to look no further.
INERT: set[type] = {Tensor, bool, int, float, complex, str, bytes, NoneType, slice, type(Ellipsis), np.ndarray, Size,
                    dtype, device, layout, range, np.float32, np.float64, np.int32, np.int64, np.bool_}  # fmt: skip
plain: set[type] = set(INERT)


# Classes that pass for Tensor, and what runs in place of some of its methods and attributes for their objects, by the name of
# the public function: called with that and its arguments.  Modes are asked first, as of every tensor.
disguised: dict[type, dict[str, Callable[..., Any]]] = {}


class _Here(threading.local):
    """This thread's part: who is asked, and the stack of modes."""

    asks = ALL
    modes: tuple[Any, ...] = ()
    passed = False  # whether `has_torch_function` is to say no once: see `questions.redispatch_function`


here = _Here()


class Unanswered(TypeError):
    """Nobody who was asked for an operator has an answer: operators of Python ask the other operand then."""


def _disabled_torch_function_impl(cls: type[Any], func: Callable[..., Any], types: tuple[type, ...],
                                  args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> object:  # fmt: skip
    """The ``__torch_function__`` of a class that overrides nothing: functions run, and results stay what they are."""
    check_ours(func)
    return unasked(func, *args, **(kwargs or {}))


def switched_off(cls: type[Any]) -> type[Any]:
    """`cls`, a subclass of Tensor, as one of which functions give plain tensors, like a Parameter."""
    cls.__torch_function__ = classmethod(_disabled_torch_function_impl)
    INERT.add(cls)
    if plain:
        plain.add(cls)
    return cls


def overrides(kind: type[Any]) -> bool:
    """Whether a class is one to be asked: neither Tensor itself nor one that is switched off, nor PyTorch's own."""
    if kind in INERT:
        return False
    method = getattr(kind, "__torch_function__", None)
    if method is None or getattr(method, "__func__", method) is _disabled_torch_function_impl:
        return False
    return not is_theirs(kind)


def plainly(*values: object) -> bool:
    """Whether there is nobody to ask: the classes of the arguments, and of what is in lists and tuples among them, are known to
    override nothing, and no thread is in a mode."""
    for x in values:
        kind = x.__class__
        if kind not in plain:
            # A named tuple may override functions itself, as quantized tensors do that are of several.
            if not isinstance(x, (list, tuple)) or (kind is not list and kind is not tuple and overrides(kind)):
                return False
            for y in x:
                if y.__class__ not in plain:
                    return False
    return True


def overriding(args: tuple[Any, ...], tensors_too: bool = False) -> list[Any]:
    """The arguments to ask, one for each class: from the left, but a subclass before its superclasses.

    args: the values, of which lists and tuples are looked into.  tensors_too: whether plain tensors count beside others,
    as they do in functions that PyTorch has in Python.
    """
    found: list[Any] = []
    _gather(args, found, tensors_too, 3)
    return [] if len(found) == 1 and found[0].__class__ is Tensor else found


def _gather(values: list[Any] | tuple[Any, ...], found: list[Any], tensors_too: bool, depth: int) -> None:
    """Put those of `values` that are to be asked into `found`, in order."""
    for x in values:
        kind = x.__class__
        if (kind in INERT or not overrides(kind)) and not (tensors_too and kind is Tensor):
            if depth and isinstance(x, (tuple, list)) and kind is not Size:
                _gather(x, found, tensors_too, depth - 1)
        elif all(kind is not y.__class__ for y in found):
            place = next((i for i, y in enumerate(found) if issubclass(kind, y.__class__)), len(found))
            found.insert(place, x)


def asked(
    func: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    found: list[Any],
    always: bool = False,
) -> Any:
    """The answer of the first of the innermost mode and the arguments `found` that has one.

    always: whether they get `kwargs` even if there are none.  Raises TypeError where all return NotImplemented.
    """
    call = (func, tuple(x.__class__ for x in found), args, *((kwargs,) if kwargs or always else ()))
    mode = None
    if here.modes:
        mode = here.modes[-1]
        with Popped():
            answer = mode.__torch_function__(*call)
        if answer is not NotImplemented:
            return answer
    for x in found:
        answer = (x if type(x) is x.__class__ else x.__class__).__torch_function__(
            *call
        )  # of one with bits: see `signs`
        if answer is not NotImplemented:
            return answer
    kinds = "".join(f"\n  - tensor subclass {x.__class__}" for x in found)
    said = f"\n  - mode object {mode!r}" if mode is not None else ""
    raise TypeError(f"Multiple dispatch failed for {name!r}; all __torch_function__ handlers returned NotImplemented:\n"
                    f"{said}{kinds}")  # fmt: skip


class Popped:
    """Without the innermost mode, which is asked; it is there again afterwards."""

    def __enter__(self) -> Any:
        self.former = here.modes
        here.modes = self.former[:-1]
        return self.former[-1]

    def __exit__(self, *error: object) -> None:
        here.modes = self.former


class _Asks:
    """Context manager that sets who is asked in this thread."""

    asks = ALL

    def __enter__(self) -> Any:
        self.former = here.asks
        here.asks = min(self.asks, self.former)
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        here.asks = self.former


class DisableTorchFunctionSubclass(_Asks):
    """Context manager in which no class is asked, but modes are."""

    asks = MODES


class DisableTorchFunction(_Asks):
    """Context manager in which neither classes nor modes are asked."""

    asks = NOBODY


def unasked(fn: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """fn(*args, **kwargs) as it works for any tensor: no class is asked."""
    with DisableTorchFunctionSubclass():
        return fn(*args, **kwargs)


def users(fn: Callable[..., Any], *args: object) -> Any:
    """fn(*args), code of the user's that a backward run calls: whoever is asked around the run is asked there.

    A run on tensors asks no class for what its formulas do.
    """
    run = modes.run
    if run is None or not run.create:
        return fn(*args)
    former, here.asks = here.asks, run.asks
    try:
        return fn(*args)
    finally:
        here.asks = former


# What a class does that says nothing of its own ---------------------------------------------------------------------


def nowrap() -> set[Any]:
    """The functions whose results stay what they are."""
    kind: Any = Tensor
    return {kind._base.__get__, kind.grad.__get__}


def __torch_function__(
    cls: type[Any],
    func: Callable[..., Any],
    types: tuple[Any, ...],
    args: tuple[Any, ...] = (),
    kwargs: dict[Any, Any] | None = None,
) -> Any:
    """Run `func`, and give tensors among its results as objects of this class.

    NotImplemented if an argument is of a class that this one is no subclass of: that one is to answer.  Raises TypeError
    where `func` is one of PyTorch, which is in the same process.
    """
    check_ours(func)
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    result = unasked(func, *args, **(kwargs or {}))
    return result if func in nowrap() else converted(result, cls)


def converted(result: Any, cls: type[Any]) -> Any:
    """`result`, the tensors in it as objects of class `cls`."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [converted(x, cls) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


__torch_function__.__qualname__ = "Tensor.__torch_function__"
Tensor.__torch_function__ = classmethod(__torch_function__)  # type: ignore[method-assign, assignment]
