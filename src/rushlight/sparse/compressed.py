"""Layouts CSC, BSR and BSC: what becomes of them in the layout COO, and how they are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named as torch
from rushlight.sparse.parts import BLOCKS, COLUMNS, KINDS
from rushlight.sparse.tensor import Sparse, made, starts_of
from rushlight.tensor import Tensor, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

__all__ = ["bsr_of_dense", "to_bsc", "to_bsr", "to_coo", "turned"]

_TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def to_coo(input: Sparse) -> Sparse:
    """A matrix of a compressed layout in the layout COO: of blocks, all their elements."""
    starts, other = input._indices_of
    first = torch.repeat_interleave(torch.arange(len(starts) - 1), starts.diff().long())
    rows, columns = (other.long(), first) if input._layout in COLUMNS else (first, other.long())
    values = input._values_of
    if input._layout in BLOCKS:
        count, high, wide = values.shape
        rows = rows[:, None, None] * high + torch.arange(high)[:, None]
        columns = columns[:, None, None] * wide + torch.arange(wide)
        rows, columns = (x.expand(count, high, wide).reshape(-1) for x in (rows, columns))
        values = values.reshape(-1)
    return made(torch.stack([rows, columns]), values, input._sizes, False, sparse_coo)


def turned(input: Sparse, dim0: int, dim1: int) -> Sparse:
    """A matrix of a compressed layout with rows and columns exchanged, unless both dimensions are the same."""
    for dim in (dim0, dim1):
        if not -2 <= dim < 2:
            raise IndexError(f"transpose: Dimension out of range (expected to be in range of [-2, 1], but got {dim})")
    if dim0 % 2 == dim1 % 2:
        return input
    values = input._values_of.transpose(1, 2) if input._layout in BLOCKS else input._values_of
    return made(input._indices_of, values, input._sizes[::-1], True, _TURNED[input._layout])


def to_bsr(input: Sparse, blocksize: Sequence[int]) -> Sparse:
    """A sparse matrix in blocks, of which one is there where any of its elements is, by rows of blocks."""
    high, wide = _checked("bsr", input, blocksize)
    if input._layout is sparse_bsr:
        return input
    coo = input.to_sparse_coo().coalesce()
    row, column = coo._indices_of
    across = input._sizes[1] // wide
    block = row // high * across + column // wide
    unique, inverse = torch.unique(block, return_inverse=True)
    place = (inverse * high + row % high) * wide + column % wide
    values = coo._values_of.new_zeros(len(unique) * high * wide).index_add(0, place, coo._values_of)
    starts = starts_of(unique // max(across, 1), input._sizes[0] // high)
    blocks: Tensor = values.reshape(len(unique), high, wide)
    return made((starts, unique % max(across, 1)), blocks, input._sizes, True, sparse_bsr)


def bsr_of_dense(dense: Tensor, blocksize: Sequence[int]) -> Sparse:
    """The blocks of a matrix of which an element is not zero, by rows of blocks: gradients reach all elements of them."""
    high, wide = _fitting("to_sparse_bsr", tuple(dense.shape), blocksize)
    blocks = dense.reshape(dense.shape[0] // high, high, dense.shape[1] // wide, wide).transpose(1, 2)
    row, column = (blocks != 0).flatten(2).any(-1).nonzero().t()
    return made((starts_of(row, blocks.shape[0]), column), blocks[row, column], tuple(dense.shape), True, sparse_bsr)


def to_bsc(input: Sparse, blocksize: Sequence[int]) -> Sparse:
    """`to_bsr` by columns of blocks."""
    high, wide = _checked("bsc", input, blocksize)
    if input._layout is sparse_bsc:
        return input
    return turned(to_bsr(input.t(), (wide, high)), 0, 1)


def _fitting(name: str, sizes: tuple[int, ...], blocksize: Any) -> tuple[int, int]:
    """A size of blocks that fill a matrix.  Raises RuntimeError for others."""
    if len(sizes) != 2:
        raise RuntimeError(f"{name}: expected a matrix of two sparse dimensions, got shape {list(sizes)}")
    if hasattr(blocksize, "__index__"):
        blocksize = (blocksize, blocksize)
    if len(blocksize) != 2 or min(blocksize) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be two positive numbers, but got {list(blocksize)}")
    high, wide = (int(n) for n in blocksize)
    if sizes[0] % high or sizes[1] % wide:
        raise RuntimeError(
            f"{name}: tensor sparse size ({sizes[0]},{sizes[1]}) must be divisible by given blocksize ({high},{wide})"
        )
    return high, wide


def _checked(kind: str, input: Sparse, blocksize: object) -> tuple[int, int]:
    """`_fitting` of a sparse matrix, whose blocks are not cut anew."""
    name = f"to_sparse_{kind}"
    high, wide = _fitting(name, input._sizes[: input.sparse_dim()], blocksize)
    if input._layout in BLOCKS and tuple(input._values_of.shape[1:]) != (high, wide):
        raise RuntimeError(
            f"{name}: conversion from {KINDS[input._layout]} with blocksize changed from {list(input._values_of.shape[1:])} to "
            f"{[high, wide]} is not supported: to_sparse_coo() comes between"
        )
    return high, wide
