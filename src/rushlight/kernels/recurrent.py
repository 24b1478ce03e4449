"""Recurrent layers: the kernels that `nn.rnn_fused` calls, a whole sequence in one direction at a time.

Rows of all steps lie one after the other.  `steps` (T, 2) of int64 lists (first row, number of rows) of the steps as they are
taken, from the end for a reversed direction; sequences are sorted by length, so that row r of a step goes on from row r of the
step before, where that has one, and else from the first state.  Gates lie side by side: LSTM i, f, g, o; GRU r, z, n.
total: rows of all steps; B: rows of the first state; H: hidden units; P: H, or the size of an LSTM's projection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, contiguous, is_half, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.products import wide_product
from rushlight.kernels.reference import recurrent as reference

__all__ = ["gru", "gru_backward", "lstm", "lstm_backward", "lstm_cell", "lstm_cell_backward", "rnn", "rnn_backward"]

exports(
    # recurrent.cpp: arrays (steps and packed weight among them), rows, batch, hidden units, steps
    lstm="a" * 9 + "nnnn",
    lstm_backward="a" * 10 + "nnnn",
    lstm_cell="a" * 6 + "nn",
    lstm_cell_backward="a" * 6 + "nn",
    gru="a" * 9 + "nnnn",
    gru_backward="a" * 11 + "nnnn",
    rnn="a" * 6 + "innnn",
    rnn_backward="a" * 7 + "innnn",
)

_PADDED = 64  # columns that a packed weight may have beside its own


def steps_of(sizes: list[int], reverse: bool) -> Array:
    """The steps (T, 2) in the order in which they are taken, for the number of rows of each."""
    rows = np.array(sizes, np.int64).reshape(-1)
    steps = np.stack((np.cumsum(rows) - rows, rows), 1)
    return np.ascontiguousarray(steps[::-1]) if reverse else steps


def working_bytes(rows: int, inputs: int, total: int, batch: int, dtype: np.dtype[Any], projected: bool) -> int:
    """Bytes that a sequence takes while it runs, beside what it returns: the packed weight, or the reference's copies.

    The state's weight is (rows, inputs).
    """
    if native(dtype) is not None and not projected:
        return rows * (inputs + _PADDED) * dtype.itemsize
    turned = rows * inputs if total >= 2 * inputs else 0
    return (turned + batch * rows) * dtype.itemsize


def _pairs(steps: Array) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in steps.tolist()]


def _table(*arrays: Array | None) -> Any:
    """The native kernels, where all arrays (None aside) are of one dtype that they know."""
    dtype = next(a.dtype for a in arrays if a is not None)
    return native(dtype) if all(a is None or a.dtype == dtype for a in arrays) else None


def _written(given: Array, dense: Array) -> None:
    """What was written to the dense copy of an array goes back to it."""
    if dense is not given:
        given[...] = dense


def _packed(w: Array) -> Array:
    return np.empty(w.shape[0] * (w.shape[1] + _PADDED), w.dtype)


def lstm(
    gates: Array, steps: Array, h0: Array, c0: Array, w_hh: Array, w_hr: Array | None, keep: bool
) -> tuple[Array, Array, Array, Array | None]:
    """An LSTM (Hochreiter and Schmidhuber, 1997): outputs (total, P), last h (B, P), last c (B, H), cells (total, H) if `keep`.

    gates: (total, 4 H), the inputs' part, becomes the gates; w_hh: (4 H, P); w_hr: (P, H).
    """
    table = _table(gates, h0, c0, w_hh) if w_hr is None else None
    h, c = h0.copy("C"), c0.copy("C")
    if table is None:
        out, cells = reference.lstm_forward(gates, _pairs(steps), h, c, w_hh, w_hr, keep)
        return out, h, c, cells
    (total, _), (batch, hidden) = gates.shape, c.shape
    out = np.empty((total, hidden), gates.dtype)
    cells = np.empty((total, hidden), gates.dtype) if keep else None
    dense = contiguous(gates)
    arrays = dense, steps, contiguous(h0), contiguous(w_hh), h, c, out, cells, _packed(w_hh)
    table.lstm(*arrays, total, batch, hidden, len(steps))
    _written(gates, dense)
    return out, h, c, cells


def lstm_backward(
    d_out: Array,
    d_last: tuple[Array, Array],
    gates: Array,
    cells: Array,
    c0: Array,
    steps: Array,
    w_hh: Array,
    w_hr: Array | None,
) -> tuple[Array, Array | None, tuple[Array, Array]]:
    """Gradients of an LSTM's gates before their functions (total, 4 H), of w_hr, and of the first h (B, P) and c (B, H).

    d_out: (total, P); d_last: those of the last h and c.
    """
    table = _table(d_out, *d_last, gates, cells, c0, w_hh) if w_hr is None else None
    dh, dc = d_last[0].copy("C"), d_last[1].copy("C")
    if table is None:
        d_gates, dw_hr = reference.lstm_backward(d_out, dh, dc, gates, cells, c0, _pairs(steps), w_hh, w_hr)
        return d_gates, dw_hr, (dh, dc)
    d_gates = np.empty(gates.shape, gates.dtype)
    read = contiguous(d_out), contiguous(gates), contiguous(cells), contiguous(c0), steps, contiguous(w_hh)
    table.lstm_backward(*read, dh, dc, d_gates, _packed(w_hh), len(gates), *dc.shape, len(steps))
    return d_gates, None, (dh, dc)


def lstm_cell(x: Array, s: Array, c: Array) -> tuple[Array, Array, Array]:
    """One step of an LSTM whose products are made: h and c (B, H), and (B, 5 H) for backward: gates and tanh(c).

    x, s: (B, 4 H), the parts of inputs and states; c: (B, H).
    """
    table = _table(x, s, c)
    if table is None:
        return reference.lstm_cell(x, s, c)
    (batch, hidden), dtype = c.shape, c.dtype
    h, after, kept = (
        np.empty((batch, hidden), dtype),
        np.empty((batch, hidden), dtype),
        np.empty((batch, 5 * hidden), dtype),
    )
    table.lstm_cell(contiguous(x), contiguous(s), contiguous(c), kept, h, after, batch, hidden)
    return h, after, kept


def lstm_cell_backward(dh: Array | None, dc: Array | None, kept: Array, c: Array) -> tuple[Array, Array]:
    """Gradients of either part of the gates (B, 4 H), and of the c before (B, H); dh or dc None is of zeros."""
    table = _table(dh, dc, kept, c)
    if table is None:
        return reference.lstm_cell_backward(dh, dc, kept, c)
    (batch, hidden), dtype = c.shape, c.dtype
    d_gates, before = np.empty((batch, 4 * hidden), dtype), np.empty((batch, hidden), dtype)
    d = [None if a is None else contiguous(a) for a in (dh, dc)]
    table.lstm_cell_backward(*d, contiguous(kept), contiguous(c), d_gates, before, batch, hidden)
    return d_gates, before


def gru(
    gates: Array, steps: Array, h0: Array, w_hh: Array, b_hh: Array | None, keep: bool
) -> tuple[Array, Array, Array | None]:
    """A GRU (Cho et al., 2014): outputs (total, H), last h (B, H), and if `keep` the state's part of n before the reset gate.

    gates: (total, 3 H), the inputs' part, becomes the gates; w_hh: (3 H, H); b_hh: (3 H).
    """
    table = _table(gates, h0, w_hh, b_hh)
    h = h0.copy("C")
    if table is None:
        out, inner = reference.gru_forward(gates, _pairs(steps), h, w_hh, b_hh, keep)
        return out, h, inner
    total, (batch, hidden) = len(gates), h.shape
    out = np.empty((total, hidden), gates.dtype)
    inner = np.empty((total, hidden), gates.dtype) if keep else None
    dense, bias = contiguous(gates), None if b_hh is None else contiguous(b_hh)
    arrays = dense, steps, contiguous(h0), contiguous(w_hh), bias, h, out, inner, _packed(w_hh)
    table.gru(*arrays, total, batch, hidden, len(steps))
    _written(gates, dense)
    return out, h, inner


def gru_backward(
    d_out: Array, d_last: Array, gates: Array, inner: Array, out: Array, h0: Array, steps: Array, w_hh: Array
) -> tuple[Array, Array, Array]:
    """Gradients of a GRU: of the state's part of the gates (total, 3 H), of n before tanh (total, H), of the first h (B, H).

    The gradient of the inputs' part is the first with its last third replaced by the second.
    """
    table = _table(d_out, d_last, gates, inner, out, h0, w_hh)
    dh = d_last.copy("C")
    if table is None:
        return *reference.gru_backward(d_out, dh, gates, inner, out, h0, _pairs(steps), w_hh), dh
    d_gates, d_new = np.empty(gates.shape, gates.dtype), np.empty(inner.shape, inner.dtype)
    read = contiguous(d_out), contiguous(gates), contiguous(inner), contiguous(out), contiguous(h0), steps
    sizes = len(gates), *dh.shape, len(steps)
    table.gru_backward(*read, contiguous(w_hh), dh, d_gates, d_new, _packed(w_hh), *sizes)
    return d_gates, d_new, dh


def rnn(gates: Array, steps: Array, h0: Array, w_hh: Array, relu: bool) -> tuple[Array, Array]:
    """The plain recurrence (Elman, 1990) with tanh, or with max(., 0): outputs (total, H), last h (B, H).

    gates: (total, H), the inputs' part, becomes the outputs; w_hh: (H, H).
    """
    table, h = _table(gates, h0, w_hh), h0.copy("C")
    if table is None:
        return reference.rnn_forward(gates, _pairs(steps), h, w_hh, relu), h
    dense = contiguous(gates)
    arrays = dense, steps, contiguous(h0), contiguous(w_hh), h, _packed(w_hh)
    table.rnn(*arrays, relu, len(gates), *h.shape, len(steps))
    _written(gates, dense)
    return gates, h


def rnn_backward(d_out: Array, d_last: Array, out: Array, steps: Array, w_hh: Array, relu: bool) -> tuple[Array, Array]:
    """Gradients of the plain recurrence: before its function (total, H), and of the first h (B, H)."""
    table, dh = _table(d_out, d_last, out, w_hh), d_last.copy("C")
    if table is None:
        return reference.rnn_backward(d_out, dh, out, _pairs(steps), w_hh, relu), dh
    d_gates = np.empty(out.shape, out.dtype)
    read = contiguous(d_out), contiguous(out), steps, contiguous(w_hh)
    table.rnn_backward(*read, dh, d_gates, _packed(w_hh), relu, len(out), *dh.shape, len(steps))
    return d_gates, dh


def product(a: Array, b: Array) -> Array:
    """a @ b of matrices over all steps; of 16-bit ones in float32."""
    return wide_product(a, b) if is_half(a.dtype) else np.asarray(a @ b)


def state_weight_gradient(grads: Array, states: Array, first: Array, steps: Array) -> Array:
    """grads.T @ (state that each row starts from): the gradient of the state's weight, in few products."""
    (start, n), (end, least) = steps[0].tolist(), steps[-1].tolist()
    if least == n:  # all steps have n rows: the states are the rows of the step before
        head = product(grads[start : start + n].T, first[:n])
        if len(steps) > 1:
            head += product(grads[n:].T, states[:-n]) if start == 0 else product(grads[:-n].T, states[n:])
        return head
    parts = reference.previous(states, first, _pairs(steps))
    if end < start:
        parts.reverse()
    return product(grads.T, np.concatenate(parts))
