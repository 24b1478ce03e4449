"""Sparse tensors as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.basics import dtypes

if TYPE_CHECKING:
    from rushlight.sparse.parts import Parts
    from rushlight.tensor import Tensor

__all__ = ["shown"]

_QUIET = (dtypes.float32, dtypes.int64, dtypes.bool)


def shown(t: Parts) -> str:
    """Places, values and sizes, as `repr` says them."""
    places = (
        {"crow_indices": t._indices_of[0], "col_indices": t._indices_of[1]} if t._csr else {"indices": t._indices_of}
    )
    parts = [f"{name}={_shown(value, len(name) + 8)}" for name, value in (*places.items(), ("values", t._values_of))]
    kind = "" if t.dtype in _QUIET else f", dtype={t.dtype}"
    layout = "torch.sparse_csr" if t._csr else "torch.sparse_coo"
    rest = f"size={tuple(t._sizes)}, nnz={t._nnz()}{kind}"
    if t._csr:
        return "tensor(" + ",\n       ".join([*parts[:-1], f"{parts[-1]}, {rest}", f"layout={layout})"])
    return "tensor(" + ",\n       ".join([*parts, f"{rest}, layout={layout})"])


def _shown(part: Tensor, indent: int) -> str:
    """Places or values as they are printed within a sparse tensor, without what is said of the whole."""
    part = part.detach()
    if not part.numel():
        return f"tensor([], size={tuple(part.shape)})"
    return repr(part).replace("\n", "\n" + " " * indent).replace(f", dtype={part.dtype}", "")
