"""Softmax over the elements that a sparse tensor has, and products computed at given places alone."""

from __future__ import annotations

from typing import Any

from rushlight.basics.dtypes import dtype
from rushlight.dispatch.named import named as torch
from rushlight.sparse.tensor import Sparse, flat_places

__all__ = ["log_softmax", "sampled_addmm", "softmax"]


def _groups(coo: Sparse, dim: int) -> tuple[Any, int]:
    """By element, which of the lines along a sparse dimension it lies in, and how many lines have elements."""
    rest = [d for d in range(coo.sparse_dim()) if d != dim]
    key = flat_places(coo._indices_of[rest], tuple(coo._sizes[d] for d in rest))
    unique, inverse = torch.unique(key, return_inverse=True)
    return inverse, len(unique)


def _normalized(name: str, input: object, dim: int, dtype: dtype | None, log: bool) -> object:
    if not isinstance(input, Sparse):
        raise TypeError(
            f"{name}: expected a sparse tensor for argument 'input', got {type(input).__name__}: torch.softmax takes others"
        )
    if not -input.dim() <= dim < input.dim():
        raise IndexError(f"{name}: Dimension out of range: expected one of {input.dim()} dimensions, got {dim}")
    coo = input.to_sparse_coo().coalesce()
    coo = coo if dtype is None else coo.to(dtype)
    dim, values = dim % input.dim(), coo._values_of
    if dim >= coo.sparse_dim():
        inner = dim - coo.sparse_dim() + 1
        return coo._with(torch.log_softmax(values, inner) if log else torch.softmax(values, inner))
    group, count = _groups(coo, dim)
    rest = values.shape[1:]
    line = group.reshape(-1, *[1] * len(rest)).expand(values.shape)
    top = values.new_zeros((count, *rest)).scatter_reduce(0, line, values.detach(), "amax", include_self=False)
    below = values - top[group]
    shares = below.exp()
    total = values.new_zeros((count, *rest)).index_add(0, group, shares)[group]
    return coo._with(below - total.log() if log else shares / total)


def softmax(input: object, dim: int, *, dtype: dtype | None = None) -> Any:
    """Softmax along a dimension over the elements that there are: the others count as minus infinity.

    input: sparse -> sparse with the same places, once each.

    >>> import rushlight as torch
    >>> torch.sparse.softmax(torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    return _normalized("torch.sparse.softmax", input, dim, dtype, False)


def log_softmax(input: object, dim: int, *, dtype: dtype | None = None) -> Any:
    """The logarithm of `softmax`."""
    return _normalized("torch.sparse.log_softmax", input, dim, dtype, True)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the places of `input`, in the layout CSR: the product is computed there alone.

    input: (N, M) sparse, mat1: (N, K), mat2: (K, M).  Raises RuntimeError for other layouts and sizes.
    """
    if not isinstance(input, Sparse) or not input.is_sparse_csr:
        raise RuntimeError("torch.sparse.sampled_addmm: Expected 'input' to have sparse csr layout, but got "
                           f"{getattr(input, 'layout', type(input).__name__)}: to_sparse_csr() makes it so")  # fmt: skip
    if (
        mat1.dim() != 2
        or mat2.dim() != 2
        or (mat1.shape[0], mat2.shape[1]) != input._sizes
        or mat1.shape[1] != mat2.shape[0]
    ):
        raise RuntimeError("torch.sparse.sampled_addmm: expected mat1 (N, K) and mat2 (K, M) with input (N, M), got "
                           f"{list(mat1.shape)}, {list(mat2.shape)} and {list(input._sizes)}")  # fmt: skip
    row, column = input.to_sparse_coo()._indices_of
    products = (mat1[row] * mat2.t()[column]).sum(-1)
    return input._with(beta * input._values_of + alpha * products)
