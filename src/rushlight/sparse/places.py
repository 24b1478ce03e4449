"""Sparse tensors cut, joined and looked into: everything that is done to places and leaves values as they are."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.dispatch.dims import wrap_dims
from rushlight.dispatch.named import named as torch
from rushlight.sparse.product import product
from rushlight.sparse.tensor import Sparse, flat_places, made
from rushlight.tensor import Tensor, sparse_coo, sparse_csr

__all__ = [
    "at",
    "bmm",
    "cat",
    "index_select",
    "is_same_size",
    "kept_sum",
    "masked",
    "narrow_copy",
    "permute",
    "product_of_elements",
    "select",
    "stack",
    "unbind",
    "unsqueeze",
]


def _dimension(t: Sparse, dim: int, name: str, more: int = 0) -> int:
    n = int(t.dim()) + more
    if not -n <= dim < n:
        raise IndexError(f"{name}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def _position(index: int, size: int, dim: int) -> int:
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of dimension {dim} with size {size}")
    return index % size


def select(input: Sparse, dim: int, index: int) -> Tensor:
    """What is at one index of a dimension: a sparse tensor with a dimension less, or, of a vector, a number."""
    coo = input.to_sparse_coo().coalesce()
    dim = _dimension(coo, dim, "select")
    index, lead = _position(operator.index(index), coo._sizes[dim], dim), coo.sparse_dim()
    sizes = coo._sizes[:dim] + coo._sizes[dim + 1 :]
    if dim >= lead:
        return made(coo._indices_of, coo._values_of.select(dim - lead + 1, index), sizes, True, False)
    there = coo._indices_of[dim] == index
    values = coo._values_of[there]
    if lead == 1:
        return values.sum(0)
    rest = [d for d in range(lead) if d != dim]
    return made(coo._indices_of[rest][:, there], values, sizes, True, False)


def at(input: Sparse, index: int | slice | tuple[int | slice, ...]) -> Tensor:
    """Numbers and full slices, one for each of the first dimensions.  Raises NotImplementedError for other indices."""
    for_each = index if isinstance(index, tuple) else (index,)
    found: Tensor = input
    dim = 0
    for one in for_each:
        if isinstance(one, slice) and one == slice(None):
            dim += 1
        elif isinstance(one, int) and not isinstance(one, bool):
            found = select(found, dim, one) if isinstance(found, Sparse) else found[(slice(None),) * dim + (one,)]
        else:
            raise NotImplementedError(
                f"indexing of a sparse tensor: expected numbers and ':', got {one!r}; index_select, narrow_copy "
                "and to_dense() give the rest"
            )
    return found


def unbind(input: Sparse, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, one for each index, as `select` gives them; iteration goes over those of the first."""
    coo = input.to_sparse_coo().coalesce()
    dim = _dimension(coo, dim, "unbind")
    return tuple(select(coo, dim, k) for k in range(coo._sizes[dim]))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same sizes."""
    return input.shape == other.shape


def index_select(input: Sparse, dim: int, index: Tensor) -> Sparse:
    """The slices at some indices of a dimension, in their order.  index: int64 (N)"""
    coo = input.to_sparse_coo().coalesce()
    dim = _dimension(coo, dim, "index_select")
    if index.dim() > 1 or index.is_floating_point() or index.dtype is dtypes.bool:
        raise IndexError(
            f"index_select() argument index must be 1-D strided (non-sparse) long-tensor: got {index.dim()}-D of {index.dtype}"
        )
    size, lead, index = coo._sizes[dim], coo.sparse_dim(), index.long()
    if index.numel() and not (0 <= int(index.min()) and int(index.max()) < size):
        raise IndexError(
            f"index_select(): index contains {int(index.max())} that is out of range for tensor of size {list(coo._sizes)}"
            f" at dimension {dim}"
        )
    sizes = (*coo._sizes[:dim], index.numel(), *coo._sizes[dim + 1 :])
    if dim >= lead:
        return made(coo._indices_of, coo._values_of.index_select(dim - lead + 1, index), sizes, True, False)
    meets = coo._indices_of[dim][:, None] == index  # each element with each place that asks for it
    element, place = meets.nonzero().t()
    indices = coo._indices_of[:, element].clone()
    indices[dim] = place
    return made(indices, coo._values_of[element], sizes, False, False).coalesce()


def narrow_copy(input: Sparse, dim: int, start: int, length: int) -> Sparse:
    """The slices from `start` on.  Raises RuntimeError where there are not `length` of them."""
    coo = input.to_sparse_coo()
    dim = _dimension(coo, dim, "narrow_copy")
    if start < 0 or length < 0 or start + length > coo._sizes[dim]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({coo._sizes[dim]}).")
    sizes = (*coo._sizes[:dim], length, *coo._sizes[dim + 1 :])
    if dim >= coo.sparse_dim():
        values = coo._values_of.narrow(dim - coo.sparse_dim() + 1, start, length)
        return made(coo._indices_of, values, sizes, coo._sorted, False)
    row = coo._indices_of[dim]
    there = (row >= start) & (row < start + length)
    indices = coo._indices_of[:, there].clone()
    indices[dim] -= start
    return made(indices, coo._values_of[there], sizes, coo._sorted, False)


def permute(input: Sparse, *dims: Any) -> Sparse:
    """With dimensions in another order: sparse ones among themselves, and dense ones."""
    order = [
        _dimension(input, d, "permute") for d in (dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)
    ]
    coo = input.to_sparse_coo()
    lead = coo.sparse_dim()
    if sorted(order) != list(range(coo.dim())) or any((d < lead) != (k < lead) for k, d in enumerate(order)):
        raise RuntimeError(
            f"permute: expected an order of {coo.dim()} dimensions whose first {lead} are sparse ones, got {order}"
        )
    values = coo._values_of.permute(0, *(d - lead + 1 for d in order[lead:]))
    return made(coo._indices_of[order[:lead]], values, tuple(coo._sizes[d] for d in order), False, False)


def unsqueeze(input: Sparse, dim: int) -> Sparse:
    """With a dimension of size 1 more."""
    coo = input.to_sparse_coo()
    dim, lead = _dimension(coo, dim, "unsqueeze", 1), coo.sparse_dim()
    sizes = (*coo._sizes[:dim], 1, *coo._sizes[dim:])
    if dim > lead:
        return made(coo._indices_of, coo._values_of.unsqueeze(dim - lead + 1), sizes, coo._sorted, False)
    zeros = coo._indices_of.new_zeros(1, coo._nnz())
    indices = torch.cat([coo._indices_of[:dim], zeros, coo._indices_of[dim:]])
    return made(indices, coo._values_of, sizes, coo._sorted, False)


def kept_sum(input: Sparse, dim: Any, dtype: dtypes.dtype | None) -> Tensor:
    """The sum over dimensions, which are kept with size 1: in the layout of the input, dense where all are summed.

    Raises RuntimeError for layouts other than COO and CSR.
    """
    if input._layout not in (sparse_coo, sparse_csr):
        raise RuntimeError(
            f"Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout {input.layout}"
        )
    gone = sorted(set(wrap_dims(tuple(dim) if isinstance(dim, (tuple, list)) else (dim,), input.dim())))
    found: Any = input.to_sparse_coo().sum(gone, dtype=dtype)
    for d in gone:
        found = found.unsqueeze(d)
    if not input.is_sparse_csr:
        return found
    return input._in_this_layout(found.to_sparse())


def cat(tensors: Sequence[Any], dim: int = 0) -> Sparse:
    """Sparse tensors one after the other along a dimension.  Raises RuntimeError unless all are sparse and fit."""
    if not all(isinstance(t, Sparse) for t in tensors):
        raise RuntimeError("cat: expected sparse tensors only; to_dense() or to_sparse() makes them alike")
    parts = [t.to_sparse_coo() for t in tensors]
    first = parts[0]
    dim, lead = _dimension(first, dim, "cat"), first.sparse_dim()
    for part in parts[1:]:
        same = [k for k in range(first.dim()) if k != dim]
        if (
            part.dim() != first.dim()
            or part.sparse_dim() != lead
            or any(part._sizes[k] != first._sizes[k] for k in same)
        ):
            raise RuntimeError(
                f"cat: Sizes of tensors must match except in dimension {dim}, and so must the sparse dimensions: got "
                f"{list(first._sizes)} and {list(part._sizes)}"
            )
    sizes = (*first._sizes[:dim], sum(p._sizes[dim] for p in parts), *first._sizes[dim + 1 :])
    if dim >= lead:
        raise NotImplementedError(
            "cat: not along dense dimensions of sparse tensors here; to_dense() makes ordinary ones"
        )
    shift, shifted = 0, []
    for part in parts:
        indices = part._indices_of.clone()
        indices[dim] += shift
        shift += part._sizes[dim]
        shifted.append(indices)
    return made(torch.cat(shifted, 1), torch.cat([p._values_of for p in parts]), sizes, False, False)


def vstack(tensors: Sequence[Any]) -> Sparse:
    """Matrices one below the other."""
    return cat(tensors, 0)


def hstack(tensors: Sequence[Any]) -> Sparse:
    """Matrices side by side; vectors one behind the other."""
    return cat(tensors, 0 if len(tensors) and tensors[0].dim() == 1 else 1)


def stack(tensors: Sequence[Sparse], dim: int = 0) -> Sparse:
    """Sparse tensors of one shape along a new dimension."""
    return cat([unsqueeze(t, dim) for t in tensors], dim)


def found(of: Sparse, places: Tensor) -> tuple[Any, Any]:
    """Where in the sorted places of one tensor each of some places is, and whether it is there at all."""
    lead = of._sizes[: of.sparse_dim()]
    keys, wanted = flat_places(of._indices_of, lead), flat_places(places, lead)
    if not len(keys):
        return wanted.new_zeros(len(wanted)), wanted != wanted
    where = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return where, keys[where] == wanted


def product_of_elements(a: Sparse, b: Sparse) -> Sparse:
    """Two sparse tensors of one shape multiplied element by element: at the places that both have."""
    if a._sizes != b._sizes:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes, but {list(a._sizes)} != {list(b._sizes)}"
        )
    left, right = a.to_sparse_coo().coalesce(), b.to_sparse_coo().coalesce()
    where, both = found(right, left._indices_of)
    values = left._values_of[both] * right._values_of[where[both]]
    out = made(left._indices_of[:, both], values, a._sizes, True, False)
    return out.to_sparse_csr() if a.is_sparse_csr and b.is_sparse_csr else out


def masked(input: Tensor, mask: Tensor) -> Sparse:
    """The elements of a tensor, sparse or not, at the places of a sparse one."""
    if not isinstance(mask, Sparse):
        raise TypeError(f"sparse_mask: expected a sparse tensor for argument 'mask', got {type(mask).__name__}")
    if tuple(input.shape) != tuple(mask.shape):
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
                           f"{list(mask.shape)}")  # fmt: skip
    made_of = _masked(input, mask.to_sparse_coo().coalesce())
    return made_of if mask.is_sparse else mask._in_this_layout(made_of)


def _masked(input: Tensor, places: Sparse) -> Sparse:
    """The elements of a tensor at the places of one in the layout COO."""
    if not isinstance(input, Sparse):
        return places._with(input[tuple(places._indices_of)])
    coo = input.to_sparse_coo().coalesce()
    if not coo._nnz():
        return places._with(coo._values_of.new_zeros((places._nnz(), *coo._values_of.shape[1:])))
    where, there = found(coo, places._indices_of)
    values = coo._values_of[where]
    return places._with(values * there.to(values.dtype).reshape(-1, *[1] * (values.dim() - 1)))


def bmm(input: Any, mat2: Any) -> Any:
    """A sparse matrix times a dense one for each of a batch, as one product of a matrix that has them as blocks.

    input: sparse (B, N, K), mat2: (B, K, M) -> (B, N, M).  Raises RuntimeError for shapes that do not meet.
    """
    if not isinstance(input, Sparse) or isinstance(mat2, Sparse):
        raise NotImplementedError("bmm: expected a sparse and a dense batch of matrices; to_dense() makes a dense one")
    if (
        input.dim() != 3
        or mat2.dim() != 3
        or input.dense_dim()
        or (input.shape[0], input.shape[2]) != tuple(mat2.shape[:2])
    ):
        raise RuntimeError(
            f"bmm: expected batches of matrices (B, N, K) and (B, K, M), got {list(input.shape)} and {list(mat2.shape)}"
        )
    batch, n, k = input.shape
    which, row, column = input._indices_of
    blocks = product(
        torch.stack([which * n + row, which * k + column]), input._values_of, mat2.reshape(batch * k, -1), batch * n
    )
    return blocks.reshape(batch, n, mat2.shape[2])
