"""Sparse tensors changed: their sizes, their contents by those of another; and products under other names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.state import modes
from rushlight.dispatch.call import write_out
from rushlight.dispatch.named import named as torch
from rushlight.sparse.tensor import Sparse
from rushlight.tensor import Tensor

__all__ = ["addmv", "cast", "clear", "copied", "into", "linear", "resize"]


def _sizes(size: Sequence[int], sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    """Sizes of so many dimensions.  Raises RuntimeError for others."""
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
        )
    return tuple(int(n) for n in size)


def resize(input: Sparse, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Sparse:
    """`input`, which has other sizes from now on.  Raises RuntimeError where its elements had no place in them."""
    sizes, lead = _sizes(size, sparse_dim, dense_dim), input.sparse_dim()
    if not input._nnz():
        return clear(input, sizes, sparse_dim, dense_dim)
    asked = "on a non-empty sparse tensor is not supported: sparse_coo_tensor(size) is an empty one"
    if sparse_dim != lead:
        raise RuntimeError(f"changing the number of sparse dimensions (from {lead} to {sparse_dim}) {asked}")
    if dense_dim != input.dense_dim():
        raise RuntimeError(f"changing the number of dense dimensions (from {input.dense_dim()} to {dense_dim}) {asked}")
    for what, a, b in (("sparse", input._sizes[:lead], sizes[:lead]), ("dense", input._sizes[lead:], sizes[lead:])):
        if any(new < old for old, new in zip(a, b, strict=True)):
            raise RuntimeError(f"shrinking the size of {what} dimensions (from {list(a)} to {list(b)}) {asked}")
    values = input._values_of
    if values.shape[1:] != sizes[lead:]:
        grown = values.new_zeros((len(values), *sizes[lead:]))
        grown[tuple([slice(n) for n in values.shape])] = values
        input._values_of = grown
    input._sizes = sizes
    return input


def clear(input: Sparse, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Sparse:
    """`input`, which has other sizes and no elements from now on."""
    sizes = _sizes(size, sparse_dim, dense_dim)
    input._indices_of = torch.zeros(sparse_dim, 0).long()
    input._values_of = input._values_of.new_zeros((0, *sizes[sparse_dim:]))
    input._sizes, input._sorted = sizes, True
    return input


def copied(input: Any, src: Any, non_blocking: bool = False) -> Sparse:
    """What `input` becomes by a copy: the elements of another sparse tensor of its shape and layout, in its dtype."""
    if not isinstance(src, Sparse):
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented: got {type(src).__name__}; to_sparse() makes one"
        )
    return src.clone().to(input.dtype)


def cast(input: Sparse, dtype: dtypes.dtype) -> Tensor:
    """The values of a sparse tensor in the dtype of the one that they are put into.  Raises RuntimeError where that loses a part."""
    if not dtypes.can_cast(input.dtype, dtype):
        raise RuntimeError(f"result type {older(input.dtype)} can't be cast to the desired output type {older(dtype)}")
    return input._values_of.to(dtype)


def into(name: str, out: Any, result: Any) -> Tensor:
    """`out` with a result: a sparse tensor takes places, values and sizes, a dense one those of a dense result.

    Raises RuntimeError for a result in another layout, and where gradients are recorded.
    """
    if out.layout is not result.layout:
        raise RuntimeError(f"{name}(): expected out= in the layout of the result, {result.layout}, got {out.layout}")
    if not isinstance(out, Sparse):
        return write_out(name, out, result)
    if modes.grad and (out.requires_grad or result.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    out._values_of = cast(result, out.dtype)
    out._indices_of, out._sorted, out._sizes = result._indices_of, result._sorted, result._sizes
    return out


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight^T + bias, the weight sparse.  (*, N), (M, N) -> (*, M)"""
    if not isinstance(weight, Sparse) or isinstance(input, Sparse):
        raise NotImplementedError("linear: not implemented for a sparse input here; to_dense() makes an ordinary one")
    rows = input.reshape(-1, input.shape[-1])
    found = weight.mm(rows.t()).t().reshape((*input.shape[:-1], weight.shape[0]))
    return found if bias is None else found + bias


def addmv(input: Tensor, mat: Sparse, vec: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec), `mat` sparse."""
    return beta * input + alpha * mat.mm(vec)
