"""What operators on floating-point numbers share: refusing other dtypes, and computing 16-bit ones in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.dtype_words import older
from rushlight.basics.state import modes
from rushlight.kernels.dispatch import in_float32_blocks, is_half, recast, room, through_float32
from rushlight.kernels.reference.special import in_blocks
from rushlight.ops.elementwise.convert import cast
from rushlight.tensor import Tensor

FLOAT32 = np.dtype(np.float32)


def require(
    fits: bool,
    name: str,
    x: Array | Tensor,
    wanted: str = "a floating-point dtype",
    error: type[RuntimeError] = NotImplementedError,
) -> None:
    """Raise `error` for a dtype that an operator does not compute."""
    if not fits:
        kind: Any = x.dtype
        shown = older(kind if isinstance(kind, dtypes.dtype) else dtypes.of(kind))
        raise error(f"\"{name}\" not implemented for '{shown}': {name}(): argument 'input' must have {wanted}, got {kind}: convert "
                    "it first, as in input.float()")  # fmt: skip


def constant(name: str, **arguments: Tensor | None) -> None:
    """Raise RuntimeError where gradients are recorded for an argument that an operator has none for: it would be lost."""
    if not modes.grad:
        return
    for argument, x in arguments.items():
        if x is not None and (x.requires_grad or any(of.requires_grad for of in under(x))):
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot have "
                "requires_grad True."
            )


def under(x: Tensor) -> Iterator[Tensor]:
    """A tensor, and those of all samples that batched levels see in it."""
    yield x
    while getattr(x._array, "samples", False):
        x = x._array.tensor
        yield x


def still(name: str, **arguments: Tensor | None) -> None:
    """As `constant`, and raise NotImplementedError where an argument has a tangent: it would be lost as well."""
    constant(name, **arguments)
    for argument, x in arguments.items():
        if (
            x is not None
            and modes.forward_grad
            and any(level in modes.levels for of in under(x) for level in of._tangents or ())
        ):
            raise NotImplementedError(
                f"Trying to use forward AD with {name} that does not support it: there is no derivative by '{argument}'"
            )


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of an array's dtype are real floating-point ones, those of 16 bits included."""
    return bool(dtype.kind == "f") or dtype in dtypes.HALVES


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of an array's dtype are real ones: floating-point ones or integers."""
    return is_float(dtype) or dtype.kind in "iu"


def mapped(fn: Callable[..., Any], x: Array, *others: Array) -> Array:
    """fn(x, *others) of equally shaped arrays, block by block, so that its temporaries stay in cache and small."""
    return in_blocks(fn, room(x, x.dtype), x, *others)


def each_in_float32(fn: Callable[..., Any], *arrays: Array) -> Any:
    """fn(*arrays) of each element: of 16 bits in float32, block by block where they are of one shape, and rounded.

    Beside wider numbers those of 16 bits are as wide.
    """
    if not any(is_half(a.dtype) for a in arrays):
        return fn(*arrays)
    wider = [a.dtype for a in arrays if a.dtype.kind == "f" and a.dtype.itemsize > 2]
    if wider:
        return fn(*(a.astype(np.result_type(*wider)) if is_half(a.dtype) else a for a in arrays))
    found = in_float32_blocks(fn, *arrays)
    return through_float32(fn, arrays[-1].dtype, *arrays) if found is None else found


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for 16-bit dtypes of NumPy, else the dtype itself."""
    return FLOAT32 if dtype.itemsize == 2 else dtype


def widened(*operands: object) -> list[Any]:
    """16-bit arrays and tensors in float32, so that what a formula makes of them neither overflows nor loses digits."""
    return [_widened(x) for x in operands]


def as_numbers(x: Any, like: Array | Tensor) -> Array | Tensor:
    """`x` in the dtype of `like`, arrays or tensors both, where it holds integers: squares of small ones wrap around."""
    array = getattr(x, "_array", x)
    if array.dtype.kind not in "biu":
        return x
    dtype = getattr(like, "_array", like).dtype
    return array.astype(dtype) if array is x else cast(x, dtype)


def _widened(x: Any) -> object:
    if x is None or x.dtype.itemsize != 2:
        return x
    if isinstance(x, np.ndarray):
        return recast(x, FLOAT32) if x.dtype in dtypes.HALVES else x
    if isinstance(x, np.generic):
        return x.astype(FLOAT32) if x.dtype in dtypes.HALVES else x
    return cast(x, FLOAT32) if x.dtype.is_floating_point else x
