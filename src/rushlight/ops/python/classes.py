"""Tensors whose class has ``__torch_dispatch__``: how operators ask it, and how such tensors are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.devices import device as device_class
from rushlight.basics.dtypes import dtype
from rushlight.basics.state import modes, set_mode
from rushlight.dispatch import call
from rushlight.dispatch.compute import compute
from rushlight.dispatch.declare import Op
from rushlight.dispatch.formats import memory_format, preserve_format
from rushlight.dispatch.options import contiguous_strides, numpy_dtype, size_of, strides_of
from rushlight.levels import Level
from rushlight.ops.python import unread
from rushlight.ops.python.handing import Call, Shown, composed, handed, kinds, named, refused, unrecorded
from rushlight.overrides.public import made
from rushlight.tensor import Tensor, layout


class Classes(Level):
    """The level of all such tensors: outside of all others, so that these are asked first."""

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input is such a tensor, and classes are asked in this thread."""
        if not unread.alive:
            set_mode("levels", tuple(level for level in modes.levels if level is not self))
            return False
        return not unread.here.off and any(isinstance(x, Tensor) and x._dispatched for x in flat)

    def idle(self) -> bool:
        """Whether there is no such tensor."""
        return not unread.alive

    def join(self) -> None:
        """Be a level of this thread, if there is any such tensor."""
        if unread.alive and self not in modes.levels:
            set_mode("levels", (self, *modes.levels))

    def note(self, tensor: Tensor) -> None:
        """Another such tensor was made."""
        unread.note(tensor)
        self.join()

    def handed_as(self, name: str, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """As `apply`, under a name of PyTorch's with the inputs alone."""
        return self.apply(op, flat, statics, (name, flat, {}))

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], known: Shown | None = None) -> Any:
        """Ask the classes of the inputs what `op` gives, and put that into the graph.  known: see `handing.Call`."""
        found = composed(op, flat, statics) if known is None else NotImplemented
        if found is not NotImplemented:
            return found
        running = Call(op, flat, statics, False, known)
        with unrecorded():
            given = answer(running, running.overload, flat, running.args, running.kwargs)
        return running.finished(given)

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Ask them to change the first input as `op` does."""
        running = Call(op, flat, statics, True)

        def run() -> tuple[Any, ...]:
            aux = running.kept() if op.aux and modes.grad and call.edges_of(op, flat)[0] else ()
            with unrecorded():
                answer(running, running.overload, flat, running.args, running.kwargs)
            return aux

        return call.changed(op, flat, statics, run)

    def seen(self, op: Op, flat: tuple[Any, ...], arrays: list[Any], statics: tuple[Any, ...]) -> Any:
        """What a view of a tensor without memory is where classes are not asked: a tensor that says its shape and strides, as that does."""
        shown = [x.held.view(np.ndarray) if getattr(x, "unread", False) and hasattr(x, "held") else x for x in arrays]
        outs, aux = compute(op, shown, statics)
        return call.deliver(op, flat, statics, tuple(unread.seen(x) for x in outs), aux)

    def called(self, name: str, *args: object, **kwargs: object) -> Any:
        """What the class of the first argument gives for an operator, outside the graph."""
        with unrecorded():
            for level in reversed(modes.levels):
                if hasattr(level, "told"):
                    return level.told(name, args, kwargs)
            return answer(None, named(name), leaves((args, kwargs)), args, kwargs)

    def like(
        self, name: str, tensor: Tensor, args: tuple[Any, ...], requires_grad: bool = False, **options: object
    ) -> Any:
        """What the class gives for `zeros_like` and its like, with those options that are given."""
        given = {k: v for k, v in options.items() if v is not None}
        found = self.called(name, tensor, *args, **{"pin_memory": False, **given})
        return found.requires_grad_() if requires_grad else found

    def detached(self, tensor: Tensor) -> Tensor:
        """What the class gives for `detach`."""
        return self.called("detach", tensor)

    def ones(self, tensor: Tensor) -> Tensor:
        """What the class gives for `ones_like`."""
        return self.called("ones_like", tensor, pin_memory=False, memory_format=preserve_format)

    def copied_as(self, tensor: Tensor, like: Array) -> Tensor:
        """What the class gives for a copy with the strides of an array of the same shape."""
        steps = list(strides_of(like)) if like.size else list(contiguous_strides(like.shape))
        options = {"dtype": tensor.dtype, "layout": tensor.layout, "device": tensor.device}
        fresh = self.called("new_empty_strided", tensor, list(tensor.shape), steps, **options)
        return self.called("copy_", fresh, tensor) if fresh._dispatched else fresh.copy_(tensor)

    def copied(self, tensor: Tensor) -> Tensor:
        """What the class gives for `clone`."""
        return self.called("clone", tensor)


def leaves(x: object) -> list[Any]:
    """What lists and the like hold."""
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (list, tuple)) else [x]


def answer(
    running: Call | None, overload: object, flat: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The answer of the first class that has one.  Raises TypeError where none has."""
    who = kinds(flat)
    for kind in who:
        found = handed(running or NOBODY, kind.__torch_dispatch__, overload, tuple(who), args, kwargs)  # type: ignore[attr-defined]
        if found is not NotImplemented:
            return found
    raise refused(overload, list(who))


class _Nobody:
    """In place of a call: what is called within is no operator's own."""

    def operands(self, *args: object) -> None:
        """None of its."""


NOBODY: Any = _Nobody()


unread.level.append(Classes)


# Tensors without memory ---------------------------------------------------------------------------------------------


def make_wrapper_subclass(
    cls: type[Any],
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: memory_format | None = None,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **dispatch: object,
) -> Any:
    """A leaf of a class with ``__torch_dispatch__`` that has a shape and no memory: its class says what operators do with it.

    size: of its dimensions; strides, storage_offset: in elements, default: those of C order, from 0; dtype: default: the
    default dtype; device: that it says it is on, any; `dispatch_sizes_strides_policy` and its like are taken, and the
    tensor has the sizes that are given here.

    Raises TypeError for what is no subclass of Tensor with ``__torch_dispatch__``.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"_make_wrapper_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    unknown = dispatch.keys() - DISPATCH
    if unknown:
        raise TypeError(f"_make_wrapper_subclass() got an unexpected keyword argument {min(unknown)!r}")
    if not unread.asks(cls):
        raise TypeError(
            f"_make_wrapper_subclass(): {cls.__name__} has no __torch_dispatch__(cls, func, types, args, kwargs), which "
            "alone could say what a tensor without memory holds: define it, or use Tensor._make_subclass(cls, data)"
        )
    check_layout(size, strides, storage_offset, dispatch.get("dispatch_sizes_strides_policy"))
    made(cls)
    shape = size_of("_make_wrapper_subclass", (tuple(size),))
    steps = contiguous_strides(shape) if strides is None else tuple(int(s) for s in strides)
    kind = numpy_dtype("_make_wrapper_subclass", dtype)
    if requires_grad and kind.kind in "biu":
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, got {dtype}")
    t: Any = object.__new__(cls)
    t._held = unread.without_memory(shape, steps, kind, int(storage_offset or 0))
    t._edge = t._storage = t._view = None
    if device is not None:
        t._place = device_class(device) if not isinstance(device, device_class) else device
    return unread.noted(t).requires_grad_(requires_grad)


def check_layout(size: Any, strides: Any, storage_offset: int | None, policy: object) -> None:
    """Raise TypeError, RuntimeError or ValueError for sizes and strides that do not go together."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"_make_wrapper_subclass(): argument 'size' (position 2) must be tuple of ints, not {type(size).__name__}"
        )
    if strides is None and storage_offset:
        raise RuntimeError("setting storage offset without stride not supported: give _make_wrapper_subclass() both")
    if strides is not None and len(strides) != len(size):
        raise RuntimeError(f"_make_wrapper_subclass(): dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                           f"({len(strides)})")  # fmt: skip
    if policy not in (None, "strides", "sizes"):
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")


DISPATCH = {
    "dispatch_sizes_strides_policy",
    "dispatch_device",
    "dispatch_layout",
    "_extra_dispatch_keys",
    "storage_size",
}
Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)  # type: ignore[attr-defined]
