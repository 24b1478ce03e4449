"""A sparse matrix times a dense one, with gradients of both, on SciPy's sparse matrices where it is installed; values times a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.autograd.function import Function
from rushlight.basics import dtypes
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.options import values as array_of
from rushlight.tensor import Tensor, wrap

__all__ = ["product", "times"]


def product(indices: Tensor, values: Tensor, dense: Tensor, rows: int) -> Tensor:
    """indices: int64 (2, N), values: (N), dense: (K, M) -> (rows, M)"""
    return _Product.apply(indices, values, dense, rows)


class _Product(Function):
    """The product, which saves what it is given and nothing else."""

    @staticmethod
    def forward(ctx: Any, indices: Tensor, values: Tensor, dense: Tensor, rows: int) -> Tensor:
        """The product."""
        ctx.save_for_backward(indices, values, dense)
        return multiplied(indices[0], indices[1], values, dense, rows)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        """Of each value, the row of the gradient times the row it met; of the dense matrix, the transposed product."""
        indices, values, dense = ctx.saved_tensors
        row, column = indices
        of_values = (g[row] * dense[column].conj()).sum(1) if ctx.needs_input_grad[1] else None
        of_dense = None
        if ctx.needs_input_grad[2]:
            of_dense = product(torch.stack([column, row]), values.conj().resolve_conj(), g, dense.shape[0])
        return None, of_values, of_dense, None


def multiplied(row: Tensor, column: Tensor, values: Tensor, dense: Tensor, rows: int) -> Tensor:
    """The product by SciPy, or without it by adding rows."""
    try:
        from scipy.sparse import csr_array
    except ImportError:
        csr_array = None
    if csr_array is None or values._array.dtype not in (np.float32, np.float64) or values.dtype is not dense.dtype:
        out = dense.new_zeros((rows, dense.shape[1]), dtype=torch.result_type(values, dense))
        return out.index_add_(0, row, (values[:, None] * dense[column]).to(out.dtype))
    matrix = csr_array((values._array, (row._array, column._array)), shape=(rows, dense.shape[0]))
    return wrap(np.ascontiguousarray(matrix @ np.ascontiguousarray(array_of("sparse product", dense))))


def times(values: Tensor, dtype: dtypes.dtype, alpha: complex) -> Tensor:
    """`alpha` times values, in the dtype of what they are added to.  Raises RuntimeError for a factor that it does not hold."""
    if dtype.category < dtypes.FLOAT and isinstance(alpha, (float, complex)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if dtype.category < dtypes.COMPLEX and isinstance(alpha, complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return values.to(dtype) if alpha == 1 else values.to(dtype) * alpha
