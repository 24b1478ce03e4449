"""Sparse gradients: what becomes of them at a leaf, and what is added to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.state import RECORDED, modes, special, way_of
from rushlight.dispatch.named import named as torch
from rushlight.engine.inplace import written
from rushlight.engine.modes import no_grad
from rushlight.engine.rows import Rows
from rushlight.kernels.dispatch import parts_of_rows
from rushlight.sparse.product import times
from rushlight.sparse.tensor import Sparse, made
from rushlight.storage import settle
from rushlight.tensor import Tensor, wrap

__all__ = ["add_to", "rows_of", "tensor_of", "total"]


def tensor_of(rows: Rows) -> Sparse:
    """The sparse tensor of the rows that a backward found."""
    values = rows.values if rows.values.flags.owndata else np.array(rows.values)
    return made(wrap(rows.indices), wrap(values), rows.shape, False, False)


def rows_of(sparse: Sparse) -> Rows:
    """What runs through the graph for a sparse tensor that a custom function returned."""
    coo = sparse.to_sparse_coo()
    return Rows(coo._sizes, coo._indices_of.numpy(), coo._values_of.detach().numpy())


def total(former: Any, g: Any) -> Tensor:
    """The accumulated gradient after another one arrives, one of the two sparse.

    The former one is changed in place, unless it is sparse and the new one is not, or a graph is made.
    """
    if former is None:
        return g
    if not g.is_sparse:
        return former.to_dense() + g
    if modes.grad:  # what holds the former one goes on with it as it is
        return former + (g if former.is_sparse else g.to_dense())
    if not former.is_sparse:
        return add_to(former, g)
    with no_grad():
        places = torch.cat([former._indices_of, g._indices_of], 1)
        return former._become(made(places, torch.cat([former._values_of, g._values_of]), former._sizes, False, False))


def add_to(dense: Tensor, sparse: Sparse, alpha: complex = 1) -> Tensor:
    """Add a sparse tensor to a dense one in place, alpha times."""
    coo = sparse.to_sparse_coo()
    if dense.shape != coo.shape:
        raise RuntimeError(f"add: expected 'other' of the shape of 'self', {list(dense.shape)}, got {list(coo.shape)}")
    if coo.sparse_dim() == 1 and _rows_added(dense, coo._indices_of, coo._values_of, alpha):
        return dense
    if not dtypes.can_cast(coo.dtype, dense.dtype):
        words = f"result type {older(coo.dtype)} can't be cast to the desired output type {older(dense.dtype)}"
        raise RuntimeError(f"add: {words}")
    return dense.index_put_(tuple(coo._indices_of), times(coo._values_of, dense.dtype, alpha), accumulate=True)


def _rows_added(dense: Tensor, places: Tensor, values: Tensor, alpha: complex) -> bool:
    """Add rows to a gapless tensor in place, alpha times, in one call, where nothing is recorded; whether it was done."""
    way = way_of((dense, values)) if special.count else RECORDED
    recorded = way is RECORDED and (dense.requires_grad or values.requires_grad)
    if not way or recorded or dense._unusual or values._unusual or alpha.__class__ not in (int, float):
        return False
    whole, rows = dense._array, values._array
    if whole.dtype != rows.dtype or whole.dtype.kind != "f" or not whole.flags.c_contiguous or not whole.size:
        return False
    settle(whole)
    rows = rows.reshape(len(rows), whole.size // len(whole))
    table, at, factor = whole.reshape(len(whole), -1), places._array[0], whole.dtype.type(alpha)
    for some in parts_of_rows(len(rows), table.shape[1], table.dtype):
        kernels.index_add_rows(table, at[some], rows[some] if alpha == 1 else rows[some] * factor)
    written(dense, "add_")
    return True
