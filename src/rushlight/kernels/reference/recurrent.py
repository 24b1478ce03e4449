"""Whole sequences of recurrent steps, forward and backward, one layer and direction at a time (see `kernels.recurrent`).

Steps are lists of (first row, rows).  Sigmoids are computed as (1 + tanh(x / 2)) / 2.
"""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array

Steps = list[tuple[int, int]]


def previous(states: Array, first: Array, steps: Steps) -> list[Array]:
    """The states that each step starts from, in steps: (n, H) each.  states: (total, H) after each step."""
    found: list[Array] = []
    last: tuple[int, int] | None = None
    for start, n in steps:
        if last is None:
            found.append(first[:n])
        else:
            before, m = last
            rows = states[before : before + min(n, m)]
            found.append(rows if n <= m else np.concatenate((rows, first[m:n])))
        last = start, n
    return found


def transposed(w: Array, rows: int) -> Array:
    """w.T for products with few rows, many times over: copied, which makes them half as fast again, where the copy is
    small beside the gates of all `rows`."""
    return np.ascontiguousarray(w.T) if rows >= 2 * w.shape[1] else w.T


# LSTM ------------------------------------------------------------------------------------------------


def lstm_forward(
    gates: Array, steps: Steps, h: Array, c: Array, w_hh: Array, w_hr: Array | None, keep: bool
) -> tuple[Array, Array | None]:
    """Run an LSTM.

    gates: (total, 4 H), the inputs' part, becomes the gates; h: (B, P) and c: (B, H), the first state, become the last
    one.  Returns the outputs (total, P) and, if `keep`, the cells (total, H).
    """
    total, hidden = gates.shape[0], c.shape[1]
    out = np.empty((total, h.shape[1]), gates.dtype)
    cells = np.empty((total, hidden), gates.dtype) if keep else None
    product, scratch = np.empty((h.shape[0], 4 * hidden), gates.dtype), np.empty_like(c)
    w, half = transposed(w_hh, total), gates.dtype.type(0.5)
    for start, n in steps:
        g, c_n, s = gates[start : start + n], c[:n], scratch[:n]
        g += np.matmul(h[:n], w, out=product[:n])
        sigmoids = g[:, : 2 * hidden], g[:, 3 * hidden :]
        for part in sigmoids:
            part *= half
        np.tanh(g, out=g)
        for part in sigmoids:
            part *= half
            part += half
        c_n *= g[:, hidden : 2 * hidden]
        c_n += np.multiply(g[:, :hidden], g[:, 2 * hidden : 3 * hidden], out=s)
        if cells is not None:
            cells[start : start + n] = c_n
        np.tanh(c_n, out=s)
        s *= g[:, 3 * hidden :]
        h[:n] = s if w_hr is None else s @ w_hr.T
        out[start : start + n] = h[:n]
    return out, cells


def lstm_backward(
    d_out: Array,
    dh: Array,
    dc: Array,
    gates: Array,
    cells: Array,
    c0: Array,
    steps: Steps,
    w_hh: Array,
    w_hr: Array | None,
) -> tuple[Array, Array | None]:
    """Gradients of an LSTM's gates before their functions (total, 4 H), and of w_hr.

    d_out: (total, P); dh: (B, P) and dc: (B, H), those of the last state, become those of the first.
    """
    hidden = cells.shape[1]
    d_gates = np.empty_like(gates)
    dw_hr = None if w_hr is None else np.zeros_like(w_hr)
    before = previous(cells, c0, steps)
    for (start, n), c_before in zip(reversed(steps), reversed(before)):
        rows = slice(start, start + n)
        g, d = gates[rows], d_gates[rows]
        i, f, a, o = (g[:, k * hidden : (k + 1) * hidden] for k in range(4))
        dh_n, dc_n = dh[:n], dc[:n]
        dh_n += d_out[rows]
        t = np.tanh(cells[rows])
        if dw_hr is None:
            dm = dh_n
        else:
            dw_hr += dh_n.T @ (o * t)
            dm = dh_n @ w_hr
        dm_o = dm * o
        _sigmoid_gradient(dm * t, o, d[:, 3 * hidden :])
        t *= t
        dc_n += dm_o
        t *= dm_o
        dc_n -= t
        _sigmoid_gradient(dc_n * a, i, d[:, :hidden])
        _sigmoid_gradient(dc_n * c_before, f, d[:, hidden : 2 * hidden])
        np.multiply(a, a, out=t)
        np.subtract(1, t, out=t)
        t *= i
        np.multiply(dc_n, t, out=d[:, 2 * hidden : 3 * hidden])
        dc_n *= f
        np.matmul(d, w_hh, out=dh_n)
    return d_gates, dw_hr


def lstm_cell(x: Array, s: Array, c: Array) -> tuple[Array, Array, Array]:
    """One step of an LSTM whose products are made: h, c, and the gates beside tanh(c)."""
    hidden, half = c.shape[1], c.dtype.type(0.5)
    kept = np.empty((len(c), 5 * hidden), c.dtype)
    i, f, a, o, t = (kept[:, k * hidden : (k + 1) * hidden] for k in range(5))
    np.add(x, s, out=kept[:, : 4 * hidden])
    np.tanh(a, out=a)
    for part in (i, f, o):
        part *= half
        np.tanh(part, out=part)
        part *= half
        part += half
    after = f * c
    after += i * a
    np.tanh(after, out=t)
    return o * t, after, kept


def lstm_cell_backward(dh: Array | None, dc: Array | None, kept: Array, c: Array) -> tuple[Array, Array]:
    """Gradients of the gates before their functions (B, 4 H), and of the c before; dh or dc None is of zeros."""
    hidden = c.shape[1]
    i, f, a, o, t = (kept[:, k * hidden : (k + 1) * hidden] for k in range(5))
    dh = np.zeros_like(c) if dh is None else dh
    of_c = dh * o * (1 - t * t)
    if dc is not None:
        of_c += dc
    d = np.empty((len(c), 4 * hidden), c.dtype)
    _sigmoid_gradient(of_c * a, i, d[:, :hidden])
    _sigmoid_gradient(of_c * c, f, d[:, hidden : 2 * hidden])
    np.multiply(of_c * i, 1 - a * a, out=d[:, 2 * hidden : 3 * hidden])
    _sigmoid_gradient(dh * t, o, d[:, 3 * hidden :])
    of_c *= f
    return d, of_c


def _sigmoid_gradient(d: Array, y: Array, out: Array) -> None:
    """d * y * (1 - y) into `out`; d is used up."""
    d *= y
    np.subtract(1, y, out=out)
    out *= d


# GRU -------------------------------------------------------------------------------------------------


def gru_forward(
    gates: Array, steps: Steps, h: Array, w_hh: Array, b_hh: Array | None, keep: bool
) -> tuple[Array, Array | None]:
    """Run a GRU.

    gates: (total, 3 H), the inputs' part, becomes the gates; h: (B, H), the first state, becomes the last one.  Returns
    the outputs (total, H) and, if `keep`, the state's part of n before the reset gate (total, H).
    """
    total, hidden = gates.shape[0], h.shape[1]
    out = np.empty((total, hidden), gates.dtype)
    inner = np.empty((total, hidden), gates.dtype) if keep else None
    product = np.empty((h.shape[0], 3 * hidden), gates.dtype)
    w, half = transposed(w_hh, total), gates.dtype.type(0.5)
    for start, n in steps:
        g, h_n, p = gates[start : start + n], h[:n], product[:n]
        np.matmul(h_n, w, out=p)
        if b_hh is not None:
            p += b_hh
        rz, new, p_new = g[:, : 2 * hidden], g[:, 2 * hidden :], p[:, 2 * hidden :]
        rz += p[:, : 2 * hidden]
        rz *= half
        np.tanh(rz, out=rz)
        rz *= half
        rz += half
        if inner is not None:
            inner[start : start + n] = p_new
        p_new *= rz[:, :hidden]
        new += p_new
        np.tanh(new, out=new)
        h_n -= new
        h_n *= rz[:, hidden:]
        h_n += new
        out[start : start + n] = h_n
    return out, inner


def gru_backward(
    d_out: Array, dh: Array, gates: Array, inner: Array, out: Array, h0: Array, steps: Steps, w_hh: Array
) -> tuple[Array, Array]:
    """Gradients of a GRU: of the state's part of the gates (total, 3 H), and of n before tanh (total, H).

    The gradient of the inputs' part is the first with its last third replaced by the second.  d_out: (total, H); dh:
    (B, H), that of the last state, becomes that of the first.
    """
    hidden = h0.shape[1]
    d_gates, d_new = np.empty_like(gates), np.empty_like(inner)
    before = previous(out, h0, steps)
    for (start, n), h_before in zip(reversed(steps), reversed(before)):
        rows = slice(start, start + n)
        g, d, dn = gates[rows], d_gates[rows], d_new[rows]
        r, z, new = (g[:, k * hidden : (k + 1) * hidden] for k in range(3))
        dh_n = dh[:n]
        dh_n += d_out[rows]
        _sigmoid_gradient(dh_n * (h_before - new), z, d[:, hidden : 2 * hidden])
        np.multiply(new, new, out=dn)
        np.subtract(1, dn, out=dn)
        dn *= dh_n
        dn *= 1 - z
        _sigmoid_gradient(dn * inner[rows], r, d[:, :hidden])
        np.multiply(dn, r, out=d[:, 2 * hidden :])
        dh_n *= z
        dh_n += d @ w_hh
    return d_gates, d_new


# The plain recurrence --------------------------------------------------------------------------------


def rnn_forward(gates: Array, steps: Steps, h: Array, w_hh: Array, relu: bool) -> Array:
    """Run the plain recurrence.  gates: (total, H), the inputs' part, becomes the outputs, and is returned.

    h: (B, H), the first state, becomes the last one.
    """
    w, product = transposed(w_hh, gates.shape[0]), np.empty_like(h)
    for start, n in steps:
        g = gates[start : start + n]
        g += np.matmul(h[:n], w, out=product[:n])
        if relu:
            np.maximum(g, 0, out=g)
        else:
            np.tanh(g, out=g)
        h[:n] = g
    return gates


def rnn_backward(d_out: Array, dh: Array, out: Array, steps: Steps, w_hh: Array, relu: bool) -> Array:
    """Gradient of the plain recurrence before its function (total, H).

    d_out: (total, H); dh: (B, H), that of the last state, becomes that of the first.
    """
    d_gates = np.empty_like(out)
    for start, n in reversed(steps):
        rows = slice(start, start + n)
        y, d, dh_n = out[rows], d_gates[rows], dh[:n]
        dh_n += d_out[rows]
        if relu:
            np.multiply(dh_n, y > 0, out=d)
        else:
            np.multiply(y, y, out=d)
            np.subtract(1, d, out=d)
            d *= dh_n
        np.matmul(d, w_hh, out=dh_n)
    return d_gates
