"""Recurrent layers on stand-ins: what the kernels of `nn.rnn_fused` make and keep, by shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.memory.counting.holders import ACTIVATION
from rushlight.memory.estimates.standins import Tally, standin
from rushlight.nn.rnn_fused import Plan


class DryPlan(Plan):
    """One layer and direction: `Plan` without its arithmetic."""

    __slots__ = ("tally",)

    def __init__(self, plan: Plan, tally: Tally):
        for name in Plan.__slots__:
            setattr(self, name, getattr(plan, name))
        self.tally = tally

    def made(self, *shape: int, like: Any) -> Any:
        array = standin(shape, like.dtype)
        self.tally.add(array, f"_{self.mode.lower()}_layer")
        return array

    def forward(self, x: Any, state: Any, w: Any, keep: bool) -> tuple[Any, Any, Any]:
        """Outputs, last state, and what is kept: the gates, and cells (LSTM) or the inner part (GRU)."""
        total, hidden = x.shape[0], w.w_hh.shape[0] // {"LSTM": 4, "GRU": 3}.get(self.mode, 1)
        gates = self.made(total, w.w_ih.shape[0], like=x)
        last = tuple(self.made(*s.shape, like=s) for s in state)
        if self.mode not in ("LSTM", "GRU"):
            return gates, last, ()
        out = self.made(total, state[0].shape[1], like=x)
        turned = w.w_hh.nbytes if total >= 2 * w.w_hh.shape[1] else 0  # a copy for many small products
        if not keep:
            self.tally.work(turned + state[0].shape[0] * w.w_hh.shape[0] * x.itemsize, "steps")
            return out, last, ()
        kept = gates, self.made(total, hidden, like=x)
        self.tally.work(turned + state[0].shape[0] * w.w_hh.shape[0] * x.itemsize, "steps")
        for array in (out, *kept):
            self.tally.categorize(array, ACTIVATION)
        return out, last, kept

    def backward(self, d_out: Any, d_last: Any, kept: Any, out: Any, state: Any, w: Any) -> tuple[Any, Any, Any]:
        """Gradients of the gates, of the weights but w_ih, and of the first state."""
        d_state = [self.made(*d.shape, like=d) for d in d_last]
        d_gates = self.made(out.shape[0], w.w_ih.shape[0], like=out)
        inner = self.made(out.shape[0], w.w_hh.shape[0] // 3, like=out) if self.mode == "GRU" else None
        of_state = [x for x in (w.w_hh, *((w.b_ih, w.b_hh) if self.bias else ()), w.w_hr) if x is not None]
        grads = [self.made(*x.shape, like=x) for x in of_state]
        del inner
        return d_gates, grads, d_state

    def products(self, d_gates: Any, x: Any, w_ih: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
        """Gradients of the inputs and of w_ih."""
        dx = self.made(*x.shape, like=x) if needs[0] else None
        if needs[1] and not x.flags.c_contiguous:
            self.tally.work(int(np.prod(x.shape)) * x.itemsize, "contiguous")
        return dx, self.made(*w_ih.shape, like=w_ih) if needs[1] else None
