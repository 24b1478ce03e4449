"""Joining and splitting along fixed dimensions, and grids: hstack, hsplit, tensor_split, meshgrid, block_diag..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.naming import called
from rushlight.dispatch import families, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array, Arrays
from rushlight.dispatch.dims import as_int, no_bool, numpy_names, sizes, wrap_dim
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.ops.index.index_select import index_select_op
from rushlight.ops.shape.join import cat, gathered, stack
from rushlight.ops.shape.moved_views import atleast
from rushlight.ops.shape.reshape import broadcast, reshape_op, reshaped, slice_op
from rushlight.tensor import Tensor, wrap


@function(out=True)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side: along the first dimension of vectors, else the second.  [(*), ...] -> (*)"""
    found = [atleast(x, 1) for x in gathered("hstack", tensors)]
    return cat(found, 0 if raw(found[0]).ndim == 1 else 1)


@function(out=True, aliases=("row_stack",))
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors below each other, along the first dimension; vectors count as rows.  [(*), ...] -> (*)"""
    return cat([atleast(x, 2) for x in gathered("vstack", tensors)], 0)


@function(out=True)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors behind each other, along the third dimension.  [(*), ...] -> (*)"""
    return cat([atleast(x, 3) for x in gathered("dstack", tensors)], 2)


@function(out=True)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side; numbers and vectors count as columns.  [(*), ...] -> (*)"""
    found = gathered("column_stack", tensors)
    return hstack([reshape_op(x, (raw(x).size, 1)) if raw(x).ndim <= 1 else x for x in found])


# Splitting -----------------------------------------------------------------------------------------


def split_points(name: str, places: object) -> int | tuple[int, ...]:
    """Where to split: an int for the number of parts, else a tuple of ends."""
    array = raw(places)
    if isinstance(array, np.ndarray):
        if array.dtype != np.int64:
            raise RuntimeError(
                f"{name} expected tensor_indices_or_sections to have dtype of long, but got {older(dtypes.of(array.dtype))}"
            )
        if array.ndim > 1:
            raise RuntimeError(f"{name} expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                               f"tensor, but got a tensor with {array.ndim} dims")  # fmt: skip
        return int(array) if array.ndim == 0 else tuple(array.tolist())
    if isinstance(places, str):
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, str)")
    return (
        sizes((places,), name, "indices_or_sections")
        if isinstance(places, (tuple, list))
        else as_int(no_bool(places), name, "indices_or_sections")
    )


@function(method=True)
@numpy_names
def tensor_split(input: Tensor, indices_or_sections: object = None, dim: int = 0, *,
                 indices: Tensor | Sequence[int] | int | None = None, sections: int | Sequence[int] | None = None,
                 tensor_indices_or_sections: object = None) -> tuple[Tensor, ...]:  # fmt: skip
    """A tuple of parts of `input` along `dim`, views: so many as equal as can be, or split before the indices given.

    Unlike those of `split`, they may be changed in place.
    """
    given = next(
        (v for v in (indices_or_sections, indices, sections, tensor_indices_or_sections) if v is not None), None
    )
    if given is None:
        raise TypeError("tensor_split() missing 1 required argument: indices_or_sections")
    shape = raw(input).shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim, places = wrap_dim(dim, len(shape)), split_points("tensor_split", given)
    n = shape[dim]
    if isinstance(places, int):
        if places <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {places}")
        each, more = divmod(n, places)
        places = tuple(each * i + min(i, more) for i in range(1, places))
    # Slices, unlike the pieces of split, may be changed in place.
    lead = (slice(None),) * dim
    starts, stops = [0, *places], [*places, None]
    return tuple(slice_op(input, (*lead, slice(a, b), ...)) for a, b in zip(starts, stops, strict=True))


def _along(name: str, least: int, dims: Callable[..., Any]) -> Callable[..., Any]:
    def fn(
        input: Tensor, indices_or_sections: object = None, *, indices: object = None, sections: object = None
    ) -> tuple[Tensor, ...]:
        ndim = raw(input).ndim
        if ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got "
                               f"a tensor with {ndim} dimensions!")  # fmt: skip
        given = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
        dim, places = dims(ndim), split_points(name, given)
        if isinstance(places, int) and (places <= 0 or raw(input).shape[dim] % places):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                               f"{raw(input).shape[dim]} is not divisible by the split_size {places}!")  # fmt: skip
        return tensor_split(input, places, dim)

    return called(
        fn, name, f"A tuple of parts as tensor_split gives them, along the dimension of {name[0]}stack, views."
    )


for _fn in (_along("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1), _along("vsplit", 2, lambda ndim: 0),
            _along("dsplit", 3, lambda ndim: 2)):  # fmt: skip
    function(method=True)(_fn)


# Grids and blocks ----------------------------------------------------------------------------------


@function()
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: Any = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid: of N vectors, N views of N dimensions.  indexing: "ij" as given, "xy" the first two swapped.

    Raises RuntimeError for tensors of more than one dimension or of several dtypes.
    """
    found = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if not found:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        caller.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")  # fmt: skip
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for x in found:
        if raw(x).ndim > 1:
            raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of "
                               f"{raw(x).ndim} dimensions")  # fmt: skip
        if raw(x).dtype != raw(found[0]).dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(found) >= 2
    order = [found[1], found[0], *found[2:]] if swap else list(found)
    shape = tuple(raw(x).size for x in order)
    grids = [broadcast(reshape_op(x, tuple(n if d == i else 1 for d, n in enumerate(shape))), shape)
             for i, x in enumerate(order)]  # fmt: skip
    if swap:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@function()
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples of one element of each vector, a row each; of one vector, itself.  (N), (M), ... -> (N * M * ..., k)"""
    for x in tensors:
        if raw(x).ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(raw(x).shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return stack([reshape_op(g, (raw(g).size,)) for g in grids], 1)


@function()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, a row each.  (N) -> (M, r)"""
    if raw(input).ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(raw(input).shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return slice_op(reshape_op(input, (raw(input).size,)), (slice(0, 0), ...))
    rows = chosen(raw(input).size, r, int(not with_replacement))
    return reshaped(index_select_op(input, rows.reshape(-1), 0), (len(rows), r))


def chosen(n: int, r: int, apart: int) -> Array:
    """All rows of `r` ascending numbers under `n`, each at least `apart` more than that before it, in order.  (M, r)"""
    rows = np.arange(n)[:, None]
    for _ in range(r - 1):
        first = rows[:, -1] + apart
        counts = np.maximum(n - first, 0)
        more = np.arange(counts.sum()) + np.repeat(first + counts - np.cumsum(counts), counts)
        rows = np.concatenate([np.repeat(rows, counts, 0), more[:, None]], 1)
    return rows


Tensor.combinations = combinations  # type: ignore[assignment, method-assign]


@op(linear=True, complex_half="moves", batch=families.on_the_diagonal)
def block_diag_op(tensors: Arrays) -> Array:
    """The matrices on the diagonal of zeros.  [(M, N), ...] -> (*, *)"""
    out = np.zeros((sum(a.shape[0] for a in tensors), sum(a.shape[1] for a in tensors)), tensors[0].dtype)
    r = c = 0
    for a in tensors:
        out[r : r + a.shape[0], c : c + a.shape[1]] = a
        r, c = r + a.shape[0], c + a.shape[1]
    return out


@block_diag_op.shape
def _(tensors: Any) -> list[shapes.Made]:
    rows, columns = (sum(a.shape[i] for a in tensors) for i in (0, 1))
    return [shapes.Made((rows, columns), tensors[0].dtype)]


@block_diag_op.grad("tensors")
def _(g: Array | Tensor, tensors_shape: tuple[Any, ...]) -> tuple[Any, ...]:
    parts, r, c = [], 0, 0
    for m, n in tensors_shape:
        parts.append(slice_op(g, (slice(r, r + m), slice(c, c + n), ...)))
        r, c = r + m, c + n
    return tuple(parts)


@function()
def block_diag(*tensors: Any) -> Tensor:
    """The matrices (numbers and vectors count as rows) on the diagonal of a matrix of zeros."""
    if not tensors:
        return wrap(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    for i, x in enumerate(tensors):
        if raw(x).ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                               f"{raw(x).ndim} dimensions")  # fmt: skip
    return block_diag_op([atleast(x, 2) for x in gathered("block_diag", list(tensors))])


@function()
@per_sample
def unravel_index(indices: Tensor | Sequence[int] | int, shape: int | Sequence[int]) -> Any:
    """Flat indices as a tuple of indices by dimension of `shape`.  (*) -> ((*), ...)"""
    if isinstance(shape, Tensor):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    given = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    for n in given:
        if not hasattr(n, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    sizes = tuple(int(n) for n in given)
    array = raw(indices)
    if not isinstance(indices, Tensor) or array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if indices._meta:
        return tuple(indices.to(dtypes.int64, copy=True) for _ in sizes)
    found, rest = [], array.astype(np.int64, copy=False)
    for n in reversed(sizes):
        found.append(wrap(np.asarray(rest % n)) if n else wrap(rest.copy()))
        rest = rest // n if n else rest
    return tuple(reversed(found))
