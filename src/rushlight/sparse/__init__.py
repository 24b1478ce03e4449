"""``torch.sparse``: functions of sparse tensors.  In the layouts COO, CSR, CSC, BSR and BSC."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ContextDecorator

from rushlight import absent
from rushlight.basics.dtypes import dtype, int64
from rushlight.dispatch.named import named
from rushlight.sparse import tensor as _tensor
from rushlight.sparse.construct import sparse_coo_tensor, sparse_csr_tensor, switches
from rushlight.sparse.kinds import older_types
from rushlight.sparse.normalize import log_softmax, sampled_addmm, softmax
from rushlight.sparse.tensor import Sparse
from rushlight.tensor import Tensor, layout, sparse_coo, sparse_csc, sparse_csr

__all__ = [
    "Sparse",
    "addmm",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "sum",
]


def mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, at least one of them sparse.

    reduce: "sum", "mean", "amax" or "amin" of the terms of each element, of which the last two make all at once; 0 where a row
    has none.  Raises RuntimeError for another.
    """
    if reduce not in (None, "sum", "mean", "amax", "amin"):
        raise RuntimeError(f"torch.sparse.mm: expected reduce='sum', 'mean', 'amax' or 'amin', got {reduce!r}")
    if reduce in ("amax", "amin"):
        return extreme(sparse.to_sparse_coo().coalesce(), dense, reduce)
    total = sparse @ dense
    if reduce != "mean":
        return total
    return total / sparse.to_sparse_csr().crow_indices().diff().clamp(min=1).to(total.dtype)[:, None]


def extreme(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor:
    """The largest or smallest term of each element of the product."""
    rows, columns = sparse.indices()
    terms = sparse.values()[:, None] * dense[columns]
    zeros = terms.new_zeros((sparse.shape[0], dense.shape[1]))
    return zeros.index_reduce(0, rows, terms, reduce, include_self=False)


def addmm(mat: Tensor, mat1: Sparse, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), mat1 sparse.  (N, M), (N, K), (K, M) -> (N, M)"""
    return _tensor.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Sparse, dim: int | Sequence[int] | None = None, dtype: dtype | None = None) -> Tensor:
    """The sum over dimensions, all by default: sparse where a sparse dimension is left."""
    return input.sum(dim, dtype=dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: layout | None = None) -> Sparse:
    """A sparse matrix with these diagonals.  diagonals: (D, N), offsets: (D)

    The k-th element of a diagonal lies in column k.
    """
    rows, columns = _checked_diagonals(diagonals, offsets, shape, layout)
    offsets = offsets.reshape(-1, 1)
    column = named.arange(diagonals.shape[-1])[None].expand(len(offsets), -1)
    row = column - offsets
    inside = (row >= 0) & (row < rows) & (column < columns)
    found = sparse_coo_tensor(
        named.stack([row[inside], column[inside]]), diagonals.reshape(len(offsets), -1)[inside], (rows, columns)
    )
    return found if layout is None else found.to_sparse(layout=layout)


def _checked_diagonals(
    diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: layout | None
) -> tuple[int, int]:
    """The shape of a matrix.  Raises RuntimeError for what are no diagonals of one."""
    count = diagonals.shape[0] if diagonals.dim() == 2 else 1
    refused = {
        f"Diagonals must be vector or matrix, got {diagonals.dim()} dimensions": diagonals.dim() not in (1, 2),
        f"Output shape must be 2d, got {list(shape)}": len(shape) != 2,
        f"Offset Tensor must have dtype Long but got {offsets.dtype}": offsets.dtype is not int64,
        f"Number of diagonals ({count}) does not match the number of offsets ({offsets.numel()})": count
        != offsets.numel(),
        "Offset tensor contains duplicate values": len(set(offsets.reshape(-1).tolist())) != offsets.numel(),
        f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}": layout
        not in (None, sparse_coo, sparse_csr, sparse_csc),
    }
    for words, wrong in refused.items():
        if wrong:
            raise RuntimeError(f"spdiags: {words}")
    return shape[0], shape[1]


absent.names(
    globals(),
    "only products, sums and what keeps zeros is computed with sparse tensors here: to_dense() makes an ordinary one",
    "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS",
    "as_sparse_gradcheck solve to_sparse_semi_structured",
)
globals()["SparseSemiStructuredTensor"]._DEFAULT_ALG_ID = 0  # which packages have as a default of theirs
globals().update(older_types())


class check_sparse_tensor_invariants(ContextDecorator):
    """A switch, as a context, a decorator or by `enable` and `disable`: whether the order of places is checked as well.

    That places lie within the size is checked in any case; that they are in order, each once, where it is switched on or
    `check_invariants=True` is given.
    """

    def __init__(self, enable: bool = True) -> None:
        self.on = enable
        self._before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether all is checked."""
        return switches["order"]

    @staticmethod
    def enable() -> None:
        """Check all from now on."""
        switches["order"] = True

    @staticmethod
    def disable() -> None:
        """Check no order from now on."""
        switches["order"] = False

    def __enter__(self) -> None:
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated: use another one for contexts within it"
            )
        self._before, switches["order"] = switches["order"], self.on

    def __exit__(self, *error: object) -> None:
        switches["order"], self._before = bool(self._before), None


def is_sparse(x: object) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(x, Tensor) and isinstance(x, Sparse)
