"""Making sparse tensors of their parts, which are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtype_words import older
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.options import check_options
from rushlight.sparse.parts import BLOCKS, COLUMNS
from rushlight.sparse.tensor import Sparse, flat_places, made
from rushlight.tensor import Tensor, layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

__all__ = ["sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
           "sparse_csr_tensor", "switches", "without_elements"]  # fmt: skip


def _parts(name: str, indices: Any, values: Any, dtype: dtypes.dtype | None,
           device: device | str | int | None) -> tuple[Any, Any]:  # fmt: skip
    """Indices as int64 and values in a dtype, outside of nothing: values keep their history.

    Places in the layout COO may be of any dtype but complex ones, as `torch.zeros` makes them; those of the others are integers.
    """
    check_options(name, device)
    found = values if isinstance(values, Tensor) else torch.tensor(values)
    found = found if dtype is None else found.to(dtype)
    places = indices if isinstance(indices, Tensor) else torch.tensor(indices)
    whole = not (places.is_floating_point() or places.is_complex() or places.dtype is dtypes.bool)
    if places.numel() and not whole and (name != "sparse_coo_tensor" or places.is_complex()):
        raise RuntimeError(f"{name}: indices must be an int64 tensor, got {places.dtype}")
    return places.long(), found


def _narrow(starts: Any, others: Any) -> bool:
    """Whether places of a compressed layout are given as int32, in which they are kept."""
    return all(isinstance(x, Tensor) and x.dtype is dtypes.int32 for x in (starts, others))


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
    if places.dim() == 2 and found.dim() and places.shape[1] != found.shape[0]:
        raise RuntimeError(
            f"sparse_coo_tensor: indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz "
            f"from values: {found.shape[0]}"
        )
    if places.dim() != 2 or places.shape[1] != (found.shape[0] if found.dim() else 1):
        raise RuntimeError("sparse_coo_tensor: indices must be sparse_dim x nnz, and there must be as many values, but got indices "
                           f"of shape {list(places.shape)} and values of shape {list(found.shape)}")  # fmt: skip
    if size is None:
        least = (places.max(1).values + 1).tolist() if places.shape[1] else [0] * places.shape[0]
        size = (*least, *found.shape[1:])
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"sparse_coo_tensor: Trying to create tensor with negative dimension {min(size)}: {list(size)}"
        )
    _check(places, found, size)
    if is_coalesced and _all_is_checked(check_invariants) and not _in_order(flat_places(places, size[: len(places)])):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: call coalesce()"
        )
    if found is values and requires_grad:
        found = found.detach()
    result = made(places, found, size, bool(is_coalesced) or places.shape[1] < 2, False)
    return result.requires_grad_() if requires_grad else result


def _all_is_checked(asked: bool | None) -> bool:
    """Whether the order of places is checked as well, of which PyTorch takes the user's word."""
    return switches["order"] if asked is None else asked


def _in_order(places: Tensor) -> bool:
    """Whether numbers grow, each larger than the one before.  (N)"""
    return bool((places.diff() > 0).all())


def _check(places: Tensor, values: Tensor, size: tuple[int, ...]) -> None:
    lead = places.shape[0]
    if len(size) == lead + max(values.dim() - 1, 0) and tuple(size[lead:]) != tuple(values.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[*values.shape[:1], *size[lead:]]}, got {list(values.shape)}"
        )
    if len(size) != lead + values.dim() - 1:
        raise RuntimeError(f"number of dimensions must be sparse_dim ({lead}) + dense_dim ({values.dim() - 1}), but got "
                           f"{len(size)}: size {list(size)}, values {list(values.shape)}")  # fmt: skip
    for d, row in enumerate(places):
        if row.numel() and (int(row.min()) < 0 or int(row.max()) >= size[d]):
            bad = int(row.min()) if int(row.min()) < 0 else int(row.max())
            if bad < 0:
                raise RuntimeError(
                    f"found negative index {bad} for dim {d}: size is inconsistent with indices, of which the least is 0"
                )
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {bad}"
            )


def sparse_csr_tensor(crow_indices: object, col_indices: object, values: object, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in the layout CSR.

    crow_indices: where each row begins, (rows + 1); col_indices, values: (N).  Raises RuntimeError for parts that do not fit.
    """
    return _compressed(_OF["sparse_csr_tensor"], crow_indices, col_indices, values, size, dtype, device, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_csc_tensor(ccol_indices: object, row_indices: object, values: object, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in the layout CSC.

    ccol_indices: where each column begins, (columns + 1); row_indices, values: (N).  Raises RuntimeError for parts that do not fit.

    >>> import rushlight as torch
    >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _compressed(_OF["sparse_csc_tensor"], ccol_indices, row_indices, values, size, dtype, device, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_bsr_tensor(crow_indices: object, col_indices: object, values: object, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in blocks, in the layout BSR.

    crow_indices: where each row of blocks begins, (rows + 1); col_indices: (N), values: (N, height, width) of a block.  Raises
    RuntimeError for parts that do not fit.
    """
    return _compressed(_OF["sparse_bsr_tensor"], crow_indices, col_indices, values, size, dtype, device, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_bsc_tensor(ccol_indices: object, row_indices: object, values: object, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                      pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in blocks, in the layout BSC.

    ccol_indices: where each column of blocks begins, (columns + 1); row_indices: (N), values: (N, height, width) of a block.
    Raises RuntimeError for parts that do not fit.
    """
    return _compressed(_OF["sparse_bsc_tensor"], ccol_indices, row_indices, values, size, dtype, device, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int] | None = None, *,
                             dtype: dtypes.dtype | None = None, layout: layout | None = None,
                             device: device | str | int | None = None, pin_memory: bool = False,
                             requires_grad: bool = False, check_invariants: bool | None = None) -> Sparse:  # fmt: skip
    """A sparse matrix in the layout given: CSR, CSC, BSR or BSC.  Raises RuntimeError for others."""
    if layout is None or layout not in _OF.values():
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    return _compressed(layout, compressed_indices, plain_indices, values, size, dtype, device, requires_grad,
                       check_invariants)  # fmt: skip


# "order": whether that places are in order, each once, is checked without `check_invariants=True`.
switches = {"order": False}
_OF = {"sparse_csr_tensor": sparse_csr, "sparse_csc_tensor": sparse_csc, "sparse_bsr_tensor": sparse_bsr,
       "sparse_bsc_tensor": sparse_bsc}  # fmt: skip


def _compressed(kind: layout, starts: Any, others: Any, values: Any, size: Sequence[int] | None, dtype: dtypes.dtype | None,
                device: device | str | int | None, requires_grad: bool, check_invariants: bool | None) -> Sparse:  # fmt: skip
    """A matrix of a compressed layout, of its parts."""
    name, narrow = f"{kind.name}_tensor", _narrow(starts, others)
    if _all_is_checked(check_invariants):
        _check_dtypes(kind, starts, others)
    others, found = _parts(name, others, values, dtype, device)
    starts, _ = _parts(name, starts, found, None, None)
    dims = 3 if kind in BLOCKS else 1
    if starts.dim() != 1 or others.dim() != 1 or found.dim() != dims or found.shape[0] != len(others):
        what = "values of three, blocks" if kind in BLOCKS else "values of one dimension"
        raise RuntimeError(f"{name}: expected two parts of the places of one dimension and {what}, the last two of one length, got "
                           f"{list(starts.shape)}, {list(others.shape)} and {list(found.shape)}")  # fmt: skip
    block = tuple(found.shape[1:]) if kind in BLOCKS else (1, 1)
    counted = (len(starts) - 1, int(others.max()) + 1 if len(others) else 0)
    if size is None:
        rows, columns = counted[::-1] if kind in COLUMNS else counted
        size = (rows * block[0], columns * block[1])
    _check_compressed(name, kind, starts, others, tuple(size), block)
    if _all_is_checked(check_invariants):
        _check_order(kind, starts, others)
    if found is values and requires_grad:
        found = found.detach()
    places = (starts.int(), others.int()) if narrow else (starts, others)
    result = made(places, found, tuple(size), True, kind)
    return result.requires_grad_() if requires_grad else result


def _check_compressed(
    name: str, kind: layout, starts: Tensor, others: Tensor, size: tuple[int, ...], block: tuple[int, ...]
) -> None:
    """Raise RuntimeError unless the parts are those of a matrix of this size in these blocks."""
    if len(size) != 2:
        raise RuntimeError(f"{name}: tensor dimensionality must be that of a matrix, 2, but got {len(size)}")
    if any(n % b if b else n for n, b in zip(size, block, strict=True)):
        raise RuntimeError(f"{name}: tensor shape {list(size)} must be divisible by the blocksize {list(block)}")
    first, second = (n // b if b else 0 for n, b in zip(size, block, strict=True))
    lines, there, across = ("crow_indices", "col_indices", ("rows", "ncols"))
    if kind in COLUMNS:
        first, second = second, first
        lines, there, across = ("ccol_indices", "row_indices", ("columns", "nrows"))
    if len(starts) != first + 1:
        raise RuntimeError(
            f"{name}: {lines}.shape[-1] must be equal to the number of {across[0]} + 1 (={first + 1}), but got {len(starts)}"
        )
    steps = starts.diff()
    held = {
        f"{lines}[..., 0] == 0": int(starts[0]) == 0,
        f"{lines}[..., -1] == nnz": int(starts[-1]) == len(others),
        f"0 <= {lines}[..., 1:] - {lines}[..., :-1]": bool((steps >= 0).all()),
        f"0 <= {there} < {across[1]}": not len(others) or (int(others.min()) >= 0 and int(others.max()) < second),
    }
    for what, holds in held.items():
        if not holds:
            raise RuntimeError(
                f"{name}: `{what}` is not satisfied by a matrix of size {list(size)} with {lines} {starts.tolist()[:8]} and "
                f"{len(others)} {there}"
            )


def _check_dtypes(kind: layout, starts: Any, others: Any) -> None:
    """Raise RuntimeError unless places that are tensors are both of int32 or both of int64."""
    if not (isinstance(starts, Tensor) and isinstance(others, Tensor)):
        return
    both = "ccol_indices and row_indices" if kind in COLUMNS else "crow_indices and col_indices"
    if starts.dtype is not others.dtype:
        got = f"{older(starts.dtype)} and {older(others.dtype)}, respectively"
        raise RuntimeError(f"{both} must have the same dtype, bot got {got}")
    if starts.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{both} dtype must be Int or Long, but got {older(starts.dtype)}")


def _check_order(kind: layout, starts: Tensor, others: Tensor) -> None:
    """Raise RuntimeError unless the places of each row, or column, are in order, each once."""
    lines, there = ("ccol_indices", "row_indices") if kind in COLUMNS else ("crow_indices", "col_indices")
    line = torch.arange(len(starts) - 1).repeat_interleave(starts.diff())
    if not _in_order(line * (int(others.max()) + 1 if len(others) else 1) + others):
        raise RuntimeError(
            f"`{there}[..., {lines}[..., i - 1]:{lines}[..., i]]` are not sorted and distinct along the last dimension: "
            "to_sparse_coo() and coalesce() put them in order"
        )


def without_elements(
    size: Sequence[int], kind: layout, dtype: dtypes.dtype | None = None, requires_grad: bool = False
) -> Sparse:
    """A sparse tensor of a size with no elements.  Raises RuntimeError in a layout of blocks, whose size nobody has said."""
    values = torch.zeros(0, dtype=dtype)
    if kind is sparse_coo:
        return sparse_coo_tensor(torch.zeros(len(size), 0).long(), values, size, requires_grad=requires_grad)
    if kind not in (sparse_csr, sparse_csc) or len(size) != 2:
        raise RuntimeError(
            f"expected a layout of a matrix without blocks for a tensor of size {list(size)}, got {kind}"
        )
    lines = size[0 if kind is sparse_csr else 1]
    none = torch.zeros(0).long()
    return sparse_compressed_tensor(
        torch.zeros(lines + 1).long(), none, values, size, layout=kind, requires_grad=requires_grad
    )
