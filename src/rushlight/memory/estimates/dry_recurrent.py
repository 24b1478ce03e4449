"""Recurrent layers on stand-ins: what the kernels of `nn.rnn_fused` make and keep, by shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import FLOAT32, is_half
from rushlight.kernels.recurrent import working_bytes
from rushlight.memory.counting.holders import ACTIVATION
from rushlight.memory.estimates.standins import BACKWARD_WORK, FORWARD_WORK, Tally, standin
from rushlight.nn.rnn_fused import Plan


def _wide(array: Any) -> Any:
    """The dtype that a sequence is computed in."""
    return FLOAT32 if is_half(array.dtype) else np.dtype(array.dtype)


class DryPlan(Plan):
    """One layer and direction: `Plan` without its arithmetic."""

    __slots__ = ("pinned", "tally")

    def __init__(self, plan: Plan, tally: Tally):
        for name in Plan.__slots__:
            setattr(self, name, getattr(plan, name))
        self.tally = tally
        self.pinned: tuple[Any, ...] = ()  # blocks that backward holds from its beginning to its end

    def made(self, *shape: int, like: Any, dtype: Any = None) -> Any:
        array = standin(shape, dtype or like.dtype)
        self.tally.add(array, f"_{self.mode.lower()}_layer")
        return array

    def multiplied(self, kind: int, rows: int, weights: tuple[Any, ...], used: object) -> None:
        """Note products of so many rows with weights, and a few passes over the gates."""
        gates = standin((rows, max((w.shape[0] for w in weights), default=0)), np.float32)
        flops = sum(2 * rows * int(w.size) for w in weights)
        self.tally.worked(kind, f"_{self.mode.lower()}_layer", flops, used, (gates, gates, gates, *weights))

    def forward(self, x: Any, state: Any, w: Any, keep: bool) -> tuple[Any, Any, Any]:
        """Outputs, last state, and what is kept: the gates, and cells (LSTM) or the inner part (GRU)."""
        used = self.tally.uses((x, w.w_ih, w.w_hh))
        self.multiplied(FORWARD_WORK, x.shape[0], (w.w_ih, w.w_hh), used)
        total, hidden = x.shape[0], w.w_hh.shape[0] // {"LSTM": 4, "GRU": 3}.get(self.mode, 1)
        gates = self.made(total, w.w_ih.shape[0], like=x)
        last = tuple(self.made(*s.shape, like=s) for s in state)
        gated = self.mode in (
            "LSTM",
            "GRU",
        )  # the plain recurrence turns its gates into its outputs, and keeps nothing else
        out = self.made(total, state[0].shape[1], like=x) if gated else gates
        kept = (gates, self.made(total, hidden, like=x)) if gated and keep else ()
        self.tally.work(self._working(x, state, w, (gates, out, *kept[1:]) if gated else (gates,)), "steps")
        if not kept:
            return out, last, ()
        for array in (out, *kept):
            self.tally.categorize(array, ACTIVATION)
        return out, last, kept

    def _working(self, x: Any, state: Any, w: Any, made: tuple[Any, ...]) -> int:
        """Bytes taken while the sequence runs."""
        rows, inputs = w.w_hh.shape
        working = working_bytes(rows, inputs, x.shape[0], state[0].shape[0], _wide(x), w.w_hr is not None)
        if is_half(x.dtype):  # float32 copies of what is read, and what is made before it is rounded
            working += 4 * sum(math.prod(a.shape) for a in (x, *state, *w.parts(), *made))
        return working

    def in_float32(self, *arrays: Any) -> Any:
        """A stand-in for float32 copies of 16 bits; None of others."""
        if not is_half(arrays[0].dtype):
            return None
        return self.made(sum(math.prod(a.shape) for a in arrays), like=arrays[0], dtype=FLOAT32)

    def backward(self, d_out: Any, d_last: Any, kept: Any, out: Any, state: Any, w: Any) -> tuple[Any, Any, Any]:
        """Gradients of the gates, of the weights but w_ih, and of the first state."""
        used = self.tally.uses((d_out, *kept, out, w.w_hh))
        self.pinned = used[1]
        self.multiplied(BACKWARD_WORK, out.shape[0], (w.w_hh, w.w_hh), used)
        dtype = _wide(out)
        held = self.in_float32(d_out, *d_last, *kept, out, *state, *w.parts())
        d_state = [self.made(*d.shape, like=d, dtype=dtype) for d in d_last]
        d_gates = self.made(out.shape[0], w.w_ih.shape[0], like=out, dtype=dtype)
        inner = self.made(out.shape[0], w.w_hh.shape[0] // 3, like=out, dtype=dtype) if self.mode == "GRU" else None
        laid_out = 0 if d_out.flags.c_contiguous or held is not None else d_out.nbytes
        rows, inputs = w.w_hh.shape
        packed = working_bytes(rows, inputs, out.shape[0], state[0].shape[0], dtype, w.w_hr is not None)
        self.tally.work(laid_out + packed, "steps")
        of_state = [x for x in (w.w_hh, *((w.b_ih, w.b_hh) if self.bias else ()), w.w_hr) if x is not None]
        grads = [self.made(*x.shape, like=x, dtype=dtype) for x in of_state]
        del inner, held
        return d_gates, grads, d_state

    def products(self, d_gates: object, x: Any, w_ih: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
        """Gradients of the inputs and of w_ih."""
        moment, blocks = self.tally.uses((d_gates, x, w_ih))
        self.multiplied(BACKWARD_WORK, x.shape[0], (w_ih,) * sum(needs), (moment, (*blocks, *self.pinned)))
        held = self.in_float32(x, w_ih)
        dx = self.made(*x.shape, like=x, dtype=_wide(x)) if needs[0] else None
        if needs[1] and not x.flags.c_contiguous:
            self.tally.work(int(np.prod(x.shape)) * x.itemsize, "contiguous")
        dw = self.made(*w_ih.shape, like=w_ih, dtype=_wide(x)) if needs[1] else None
        del held
        return dx, dw
