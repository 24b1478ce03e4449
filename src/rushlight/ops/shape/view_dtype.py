"""The memory of a tensor read as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import op
from rushlight.ops.elementwise.convert import detach
from rushlight.signs import CONJ

if TYPE_CHECKING:
    import numpy as np

    from rushlight.tensor import Tensor


@op(view=True, batch=families.targeted)
def view_dtype_op(input: Array, dtype: np.dtype[Any]) -> Array:
    """The bytes of `input` read as another dtype.  (*) -> (*), the last size in proportion"""
    return input.view(dtype)


def view_as_dtype(input: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """The bytes of `input` read as a NumPy dtype; elements of another size change the last dimension in proportion.

    The result is outside the graph, as that of `detach`: other bits have no derivative.
    """
    array = held(input)
    if getattr(input, "_bits", 0):
        kind = "conjugate view tensors" if input._bits & CONJ else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype: use "
                           "resolve_conj() and resolve_neg()")  # fmt: skip
    if array.dtype == dtype:
        return detach(input)
    old, new = array.itemsize, dtype.itemsize
    if old != new and not array.ndim:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {older(dtypes.of(array.dtype))} as {older(dtypes.of(dtype))} (different "
            "element sizes)"
        )
    if old != new and array.size and array.shape[-1] > 1 and array.strides[-1] != old:
        raise RuntimeError(
            f"self.stride(-1) must be 1 to view {older(dtypes.of(array.dtype))} as {older(dtypes.of(dtype))} (different "
            f"element sizes), but got {array.strides[-1] // old}"
        )
    if new > old and array.shape[-1] % (new // old):
        raise RuntimeError(f"self.size(-1) must be divisible by {new // old} to view {older(dtypes.of(array.dtype))} as "
                           f"{older(dtypes.of(dtype))} (different element sizes), but got {array.shape[-1]}")  # fmt: skip
    if new > old and array.size:
        _check_steps(input, array, dtype)
    return detach(view_dtype_op(detach(input), dtype))


def _check_steps(input: Tensor, array: Array, dtype: np.dtype[Any]) -> None:
    """Raise RuntimeError where rows, or the first element, do not begin at a whole number of the larger elements."""
    old, times = array.itemsize, dtype.itemsize // array.itemsize
    steps = [(f"self.stride({d})", array.strides[d] // old) for d in range(array.ndim - 1) if array.shape[d] > 1]
    for what, step in [("self.storage_offset()", input.storage_offset()), *steps]:
        if step % times:
            raise RuntimeError(
                f"{what} must be divisible by {times} to view {older(dtypes.of(array.dtype))} as {older(dtypes.of(dtype))} "
                f"(different element sizes), but got {step}: clone() first"
            )
