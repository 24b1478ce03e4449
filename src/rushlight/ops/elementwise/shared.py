"""What gradient formulas of elementwise operators share, and in-place work in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes
from rushlight.dispatch import call, families, shapes
from rushlight.dispatch.compute import compute
from rushlight.dispatch.declare import Array, Op
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import op
from rushlight.kernels.dispatch import as_truths, is_half, of_halves
from rushlight.tensor import Tensor

ndarray = np.ndarray
BLOCK = 1 << 16
SMALL = 1 << 11  # elements up to which two calls of NumPy cost less than finding the kernel


def times(g: Array | Tensor, t: Array | Tensor) -> Any:
    """g * t, where `t` is a temporary of the formula's own: as an array, its memory is used again."""
    if t.__class__ is ndarray and g.__class__ is ndarray and _has_room(t, g):
        if g.itemsize == 2:
            found = of_halves(np.multiply, g, t, t)
            if found is not None:
                return found
        if t.dtype is g.dtype or (t.dtype.kind == "c" and np.can_cast(g.dtype, t.dtype)):
            return np.multiply(g, t, out=t)
    return t if stands(t, g) else g * t


def over(g: Array | Tensor, t: Array | Tensor) -> Any:
    """g / t, where `t` is a temporary of the formula's own."""
    if t.__class__ is ndarray and g.__class__ is ndarray and t.dtype is g.dtype and _has_room(t, g):
        if g.itemsize == 2:
            found = of_halves(np.divide, g, t, t)
            if found is not None:
                return found
        return np.divide(g, t, out=t)
    return t if stands(t, g) else g / t


def parted(t: Array | Tensor, x: Array | Tensor) -> Any:
    """t / x, where `t` is a temporary of the formula's own."""
    if t.__class__ is ndarray and x.__class__ is ndarray and t.dtype is x.dtype and _has_room(t, x):
        found = of_halves(np.divide, t, x, t) if t.itemsize == 2 else np.divide(t, x, out=t)
        if found is not None:
            return found
    return t if stands(t, x) else t / x


def _has_room(t: Array, g: Array) -> bool:
    """Whether `t` has the shape of what is made of both."""
    return t.shape == g.shape or (t.size > g.size and np.broadcast_shapes(t.shape, g.shape) == t.shape)


def stands(t: Any, g: Any) -> bool:
    """Whether a tensor stands for what is written over it: while memory is estimated of a formula that runs on arrays."""
    reuses = getattr(modes.levels[-1], "reuses", None) if modes.levels else None
    return reuses is not None and t.__class__ is not ndarray and reuses(t, g)


def none_is_zero(x: Array) -> bool:
    """Whether no element is 0, as is taken of those whose values are not known while memory is estimated."""
    return is_unknown(x) or bool(as_truths(x).all())


def is_unknown(x: Array) -> bool:
    """Whether the values of an array are not those of a run, while memory is estimated."""
    return bool(modes.levels) and any(level.dry and level.is_unknown(x) for level in modes.levels)


def opposite(t: Array | Tensor) -> Any:
    """-t, where `t` is a temporary of the formula's own."""
    return np.negative(t, out=t) if t.__class__ is ndarray else t if stands(t, t) else -t


def plus(t: Array | Tensor, x: Array | Tensor) -> Any:
    """t + x, where `t` is a temporary of the formula's own."""
    if t.__class__ is ndarray and x.__class__ is ndarray and t.dtype is x.dtype and t.shape == x.shape:
        return np.add(t, x, out=t)
    return t if stands(t, x) else t + x


@op(
    aten_call="nothing",
    linear=True,
    complex_half="moves",
    shape=shapes.same,
    batch=families.targeted,
)  # without a formula: zeros depend on nothing, and have no graph
def nothing(input: Array) -> Array:
    """Zeros in the shape and dtype of `input`: the gradient of what is constant almost everywhere.  (*) -> (*)"""
    return np.zeros(input.shape, input.dtype)


@op(
    aten_call="kept",
    linear=True,
    masks=("mask",),
    grads={"grad": lambda g, mask: keep(g, mask)},
    complex_half="moves",
    shape=shapes.dense_grad,
    batch=families.targeted,
)
def keep(grad: Array, mask: Array) -> Array:
    """`grad` where `mask` (bool) is True, else 0, also where `grad` is not finite there.  (*), (*) -> (*)"""
    if grad.dtype.kind == "f" and grad.itemsize > 2:
        return backend.relu_backward(grad, mask)
    return backend.choose(mask, grad, np.zeros((), grad.dtype))


NUMBERS = (float, int, type(None))


def limited(x: Array, low: Any, high: Any, out: Array | None = None) -> Any:
    """min(max(x, low), high), NaN where any is; bounds are numbers or arrays, either may be None."""
    numbers = (low.__class__ in NUMBERS and high.__class__ in NUMBERS) or np.ndim(low) == np.ndim(high) == 0
    if x.size > SMALL and (x.dtype.kind == "f" or is_half(x.dtype)) and numbers:
        bounds = -math.inf if low is None else float(low), math.inf if high is None else float(high)
        if not any(map(math.isnan, bounds)):
            return backend.clamp(x, *bounds, out=out)
    if low is not None:
        x = np.maximum(x, low, out=out)
        if out is None and x.__class__ is ndarray and (numbers or np.shape(high) in ((), x.shape)):
            out = x
    return x if high is None else np.minimum(x, high, out=out)


def recording() -> bool:
    """Whether what a forward keeps beside its result may be asked for."""
    return modes.keeps and (modes.grad or bool(modes.levels))


def number(x: Any) -> Any:
    """A Python number of a number or of a tensor with one element."""
    if isinstance(x, Tensor):
        array = x._array
        x = array.astype(np.float32).item() if array.dtype.kind == "V" else array.item()
    return x.item() if isinstance(x, np.generic) else x


def factor(name: str, x: object) -> Any:
    """`number(x)` of what gets no gradient.  Raises TypeError for a tensor that requires grad."""
    if isinstance(x, Tensor) and x.requires_grad:
        raise TypeError(f"argument '{name}' must be Number, not Tensor that requires grad: multiply by it instead")
    return number(x)


def plain(x: Array | Tensor) -> Any:
    """The array of a tensor, to compute masks of; a tensor whose values a level hides remains a tensor."""
    array = raw(x)
    return x if getattr(array, "interpreted", False) else array


def maybe_any(mask: Array | Tensor) -> bool:
    """Whether any element of a mask may be true; so it is where a level hides values."""
    array = raw(mask)
    return bool(getattr(array, "interpreted", False) or getattr(array, "unread", False) or array.any())


def complex_refused(kind: type[Exception], phrase: str) -> Callable[[str], Exception]:
    """What raises `kind` for dtypes, and says `phrase` where they are complex."""
    return lambda words: kind(f"{phrase}: {words}" if "complex tensors" in words else words)


def result_type_of(*operands: object) -> dtype:
    """The dtype in which tensors, arrays and numbers meet."""
    return dtypes.result_dtype([raw(x) for x in operands])


def dtype_of(x: Array | Tensor) -> np.dtype[Any]:
    """The NumPy dtype of a tensor or array."""
    return raw(x).dtype


def require_tensors(name: str, **operands: object) -> None:
    """Raise TypeError for the first of the named operands that is not a tensor (or an array, in formulas)."""
    for i, (argument, x) in enumerate(operands.items()):
        if not isinstance(x, (Tensor, ndarray, np.generic)):
            raise TypeError(f"{name}(): argument '{argument}' (position {i + 1}) must be Tensor, not {kind_of(x)}")


def floating_into(of: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    """An `into` for operator `of` on one tensor: `fn(x)` changes floating-point and complex `x` in place."""

    def into(x: Array, *statics: object) -> Any:
        if x.dtype.kind in "fc":
            fn(x, *statics)
        else:
            outs, _ = compute(of, [x], statics)
            call.write(of.name, x, outs[0])

    return into


def tensor_first(operands: list[Any]) -> None:
    """Raise TypeError if the first of an operator's operands is a number."""
    if not isinstance(operands[0], (ndarray, np.generic)):
        raise TypeError(f"argument 'input' (position 1) must be Tensor, not {kind_of(operands[0])}")


def apart(a: Array, b: Array) -> bool:
    """Whether two equally shaped contiguous arrays are the same memory or share none."""
    return not np.may_share_memory(a, b) or a.__array_interface__["data"] == b.__array_interface__["data"]


def in_blocks(of: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    """An `into` for operator `of`: `fn(x, *arrays, *numbers)` changes x in place, with temporaries of its size.

    Large arrays are worked on in blocks, so that the temporaries stay in cache and cost no memory.
    """
    count = len(of.tensors)

    def into(x: Array, *rest: object) -> Any:
        arrays = [x, *(o for o in rest if isinstance(o, ndarray))]
        numbers = rest[len(arrays) - 1 :]
        alike = all(o.dtype == x.dtype and o.shape == x.shape for o in arrays)
        if not alike or x.dtype.kind != "f" or not all(isinstance(n, (int, float)) for n in numbers):
            outs, _ = compute(of, [x, *rest[: count - 1]], rest[count - 1 :])
            call.write(of.name, x, outs[0])
        elif x.size <= BLOCK or not all(a.flags.c_contiguous and apart(a, x) for a in arrays):
            fn(*arrays, *numbers)
        else:
            flat = [a.reshape(-1) for a in arrays]
            for start in range(0, x.size, BLOCK):
                fn(*(a[start : start + BLOCK] for a in flat), *numbers)

    return into
