"""Products of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.basics.dtypes import dtype
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import numpy_names, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import along, function, op
from rushlight.kernels.dispatch import is_half
from rushlight.ops.elementwise.arith import conj, own_conj
from rushlight.ops.elementwise.shared import none_is_zero, times
from rushlight.ops.reduce.scan import cumprod_op
from rushlight.ops.reduce.sums import fold, in_dtype, tensor_argument, unsqueezed
from rushlight.ops.shape.join import cat_op
from rushlight.ops.shape.reshape import reshape_op, slice_op
from rushlight.tensor import Tensor


@op(
    aten=("prod.dim_int(input, dim, keepdim=False)",),
    aten_gradient="product",
    autocast="float32",
    half=None,
    shape=shapes.own_reduction,
    batch=families.shifted,
)
def prod_op(input: Array, dim: int, keepdim: bool) -> Array:
    """Product along `dim`.  (*) -> (*)"""
    own = {} if is_half(input.dtype) else {"dtype": input.dtype}  # of small integers NumPy's would be int64
    return fold(np.multiply, input, (dim,), keepdim, **own)


@prod_op.grad("input")
def _(g: Array | Tensor, input: Array | Tensor, out: Array | Tensor, dim: int, keepdim: bool) -> Array | Tensor:
    shape = raw(input).shape
    up = unsqueezed(g, shape, (dim,), keepdim)
    if not shape or shape[dim] == 1:
        return up
    if not getattr(raw(input), "interpreted", False) and none_is_zero(raw(input)):
        return times(up, own_conj(unsqueezed(out, shape, (dim,), keepdim) / input))
    return up * conj(products_of_others(input, dim))


def products_of_others(x: Array | Tensor, dim: int) -> Tensor:
    """Of each element the product of all others along `dim`: exact where there are zeros."""
    n, lead = raw(x).shape[dim], (slice(None),) * dim
    one = np.ones((*raw(x).shape[:dim], 1, *raw(x).shape[dim + 1 :]), raw(x).dtype)
    before = cumprod_op(cat_op((one, slice_op(x, (*lead, slice(0, n - 1)))), dim), dim, False)
    after = cumprod_op(cat_op((slice_op(x, (*lead, slice(1, n))), one), dim), dim, True)
    return before * after


@function(method=True, out="computed", out_where=along)
@numpy_names
def prod(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """Product of the elements, all or along `dim`.  (*) -> (*)

    Integers and bools are multiplied as int64. The gradient is exact where elements are zero.
    """
    array = tensor_argument("prod", input)
    input = in_dtype("prod", input, dtype)
    if dim is None and not keepdim:
        return prod_op(reshape_op(input, (array.size,)), 0, False)
    if dim.__class__ is bool or not hasattr(dim, "__index__"):
        raise TypeError(f"prod(): argument 'dim' must be int, not {type(dim).__name__}")
    return prod_op(input, wrap_dim(dim, array.ndim), keepdim)
