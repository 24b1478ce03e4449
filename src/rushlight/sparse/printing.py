"""Sparse tensors as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.ops.python.printing import body, ended, goes_without_saying, history

if TYPE_CHECKING:
    from rushlight.sparse.parts import Parts
    from rushlight.tensor import Tensor

__all__ = ["shown"]


def shown(t: Parts) -> str:
    """Places, values and sizes, as `repr` says them."""
    parts = [
        _shown(f"{name}=tensor(", part, 7) for name, part in (*t._named_places().items(), ("values", t._values_of))
    ]
    last = [f"size={tuple(t._sizes)}", f"nnz={t._nnz()}"]
    if not goes_without_saying(t.dtype):
        last.append(f"dtype={t.dtype}")
    last += [f"layout={t.layout}", *history(t)]
    before = "Parameter containing:\n" if "_is_param" in t.__dict__ else ""
    return before + ended("tensor(" + ",\n       ".join(parts), last, 7, t.is_sparse)


def _shown(prefix: str, part: Tensor, indent: int) -> str:
    """Places or values as they are printed within a sparse tensor, without what is said of the whole."""
    array = part.detach()._array
    if not array.size:
        return f"{prefix}[], size={tuple(array.shape)})"
    return f"{prefix}{body(array, indent + len(prefix))})"
