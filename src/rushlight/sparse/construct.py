"""Making sparse tensors of their parts, which are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rushlight.basics import dtypes
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.options import check_options
from rushlight.sparse.tensor import made
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.basics.devices import device
    from rushlight.sparse.tensor import Sparse

__all__ = ["sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
           "sparse_csr_tensor"]  # fmt: skip


def _parts(name: str, indices: Any, values: Any, dtype: dtypes.dtype | None,
           device: device | str | int | None) -> tuple[Any, Any]:  # fmt: skip
    """Indices as int64 and values in a dtype, outside of nothing: values keep their history."""
    check_options(name, device)
    found = values if isinstance(values, Tensor) else torch.tensor(values)
    found = found if dtype is None else found.to(dtype)
    places = indices if isinstance(indices, Tensor) else torch.tensor(indices)
    if places.numel() and (places.is_floating_point() or places.dtype is dtypes.bool):
        raise RuntimeError(f"{name}: indices must be an int64 tensor, got {places.dtype}")
    return places.long(), found


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None, out: Tensor | None = None) -> Sparse:  # fmt: skip
    """A sparse tensor in the layout COO: the value at each place; those of one place are added.

    indices: int64 (sparse dimensions, N); values: (N, *); size: of the whole, the least by default.  Of a size alone, an empty
    one.  Raises RuntimeError for parts that do not fit.

    >>> import rushlight as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        size = tuple(indices if size is None else size)
        indices, values = torch.zeros(len(size), 0, dtype=dtypes.int64), torch.zeros(0)
    places, found = _parts("sparse_coo_tensor", indices, values, dtype, device)
    if places.dim() != 2 or places.shape[1] != (found.shape[0] if found.dim() else 1):
        raise RuntimeError("sparse_coo_tensor: indices must be sparse_dim x nnz, and there must be as many values, but got indices "
                           f"of shape {list(places.shape)} and values of shape {list(found.shape)}")  # fmt: skip
    if size is None:
        least = (places.max(1).values + 1).tolist() if places.shape[1] else [0] * places.shape[0]
        size = (*least, *found.shape[1:])
    size = tuple(int(n) for n in size)
    _check(places, found, size)
    if found is values and requires_grad:
        found = found.detach()
    result = made(places, found, size, bool(is_coalesced) or places.shape[1] == 0, False)
    return result.requires_grad_() if requires_grad else result


def _check(places: Tensor, values: Tensor, size: tuple[int, ...]) -> None:
    lead = places.shape[0]
    if len(size) != lead + values.dim() - 1 or tuple(size[lead:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"number of dimensions must be sparse_dim ({lead}) + dense_dim ({values.dim() - 1}), but got "
                           f"{len(size)}: size {list(size)}, values {list(values.shape)}")  # fmt: skip
    for d, row in enumerate(places):
        if row.numel() and (int(row.min()) < 0 or int(row.max()) >= size[d]):
            bad = int(row.min()) if int(row.min()) < 0 else int(row.max())
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {bad}"
            )


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in the layout CSR.

    crow_indices: where each row begins, (rows + 1); col_indices, values: (N).  Raises RuntimeError for parts that do not fit.
    """
    columns, found = _parts("sparse_csr_tensor", col_indices, values, dtype, device)
    starts, _ = _parts("sparse_csr_tensor", crow_indices, found, None, None)
    if starts.dim() != 1 or columns.dim() != 1 or found.shape != columns.shape:
        raise RuntimeError("sparse_csr_tensor: expected crow_indices, col_indices and values of one dimension, the last two of one "
                           f"length, got {list(starts.shape)}, {list(columns.shape)} and {list(found.shape)}")  # fmt: skip
    if size is None:
        size = (len(starts) - 1, int(columns.max()) + 1 if len(columns) else 0)
    fits = (
        len(starts) == size[0] + 1
        and int(starts[0]) == 0
        and int(starts[-1]) == len(columns)
        and bool((starts.diff() >= 0).all())
    )
    if not fits or (len(columns) and (int(columns.min()) < 0 or int(columns.max()) >= size[1])):
        raise RuntimeError(f"sparse_csr_tensor: rows that begin at {starts.tolist()[:8]} with {len(columns)} columns do not fit a matrix "
                           f"of size {list(size)}")  # fmt: skip
    if found is values and requires_grad:
        found = found.detach()
    result = made((starts, columns), found, tuple(size), True, True)
    return result.requires_grad_() if requires_grad else result


WHY = "layouts CSC, BSR and BSC are not here: torch.sparse_csr_tensor and torch.sparse_coo_tensor are"


def sparse_csc_tensor(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"sparse_csc_tensor: {WHY}")


def sparse_bsr_tensor(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"sparse_bsr_tensor: {WHY}")


def sparse_bsc_tensor(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"sparse_bsc_tensor: {WHY}")


def sparse_compressed_tensor(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"sparse_compressed_tensor: {WHY}")
