"""The step of an LSTM's cell from its products: all its gates in one operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import op
from rushlight.kernels import recurrent as kernels
from rushlight.tensor import Tensor


def rows(x: Array | None) -> Any:
    """`x` (*, H) as a matrix (rows, H)."""
    return x if x is None or x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@op(
    name="_thnn_fused_lstm_cell",
    shown="thnn_fused_lstm_cell",
    half=None,
    outputs=("hy", "cy", "kept"),
    batch=families.leading,
)
def lstm_cell_op(input_gates: Array, hidden_gates: Array, cx: Array) -> tuple[Array, ...]:
    """An LSTM's next h and c, and (*, 5 H) of which its gradients are made: the gates i, f, g, o and tanh(c).

    input_gates, hidden_gates: (*, 4 H), the products of inputs and states with their weights; cx: (*, H).
    """
    hy, cy, kept = kernels.lstm_cell(rows(input_gates), rows(hidden_gates), rows(cx))
    return hy.reshape(cx.shape), cy.reshape(cx.shape), kept.reshape(*cx.shape[:-1], kept.shape[-1])


@lstm_cell_op.shape
def _(cx: Array) -> list[shapes.Made]:
    return [shapes.packed(cx)] * 2 + [shapes.Made((*cx.shape[:-1], 5 * cx.shape[-1]), cx.dtype)]


def fits(*tensors: Tensor) -> bool:
    """Whether the operator takes these: tensors of float32 or float64, all of one dtype, of shapes that go together."""
    x, s, c = (t._array for t in tensors)
    return (
        (c.dtype == np.float32 or c.dtype == np.float64)
        and x.dtype == s.dtype == c.dtype
        and x.shape == s.shape == (*c.shape[:-1], 4 * c.shape[-1])
    )


def _raw(gs: list[Any], cx: Array, kept: Array) -> tuple[Any, ...]:
    """Of arrays; `kept` has a gradient only where a gradient is differentiated again."""
    if gs[2] is not None:
        g_hy, g_cy = (np.zeros_like(cx) if g is None else g for g in gs[:2])
        return _slopes(g_hy, g_cy, gs[2], cx, kept)
    d_gates, d_cx = kernels.lstm_cell_backward(rows(gs[0]), rows(gs[1]), rows(kept), rows(cx))
    d_gates = d_gates.reshape(*cx.shape[:-1], d_gates.shape[-1])
    return d_gates, d_gates, d_cx.reshape(cx.shape)


@lstm_cell_op.grad("input_gates", "hidden_gates", "cx", raw=_raw)
def _slopes(
    g_hy: Array | Tensor, g_cy: Array | Tensor, g_kept: Array | Tensor, cx: Array | Tensor, kept: Array | Tensor
) -> tuple[Any, ...]:
    i, f, a, o, t = ops.chunk(kept, 5, -1)
    gi, gf, ga, go, gt = ops.chunk(g_kept, 5, -1)
    of_c = g_cy + (g_hy * o + gt) * (1 - t * t)
    d_i, d_f = (of_c * a + gi) * i * (1 - i), (of_c * cx + gf) * f * (1 - f)
    d_a, d_o = (of_c * i + ga) * (1 - a * a), (g_hy * t + go) * o * (1 - o)
    d_gates = ops.cat((d_i, d_f, d_a, d_o), -1)
    return d_gates, d_gates, of_c * f
