"""One layer and direction of a recurrent network as one node of the graph.

Forward and backward run whole sequences on arrays (`kernels.recurrent`): a step costs its products and a few passes over its
gates.  Where a backward is itself to be differentiated, the layer is computed again from operators (`recurrent`), whose
gradients have gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.autograd import Function, grad
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes, special
from rushlight.engine.modes import enable_grad
from rushlight.kernels import recurrent as kernels
from rushlight.kernels.dispatch import is_half, rounded, up
from rushlight.kernels.recurrent import product
from rushlight.kernels.rows import add_row, sum_rows
from rushlight.levels import owned
from rushlight.nn import recurrent
from rushlight.overrides import handle_torch_function, has_torch_function
from rushlight.tensor import Tensor, wrap


class Weights:
    """The weights of one layer and direction by their parts: w_ih, w_hh and, where there are any, b_ih, b_hh, w_hr."""

    __slots__ = ("b_hh", "b_ih", "w_hh", "w_hr", "w_ih")
    b_ih: Any
    b_hh: Any

    def __init__(self, parts: Any, bias: bool, projected: bool):
        self.w_ih, self.w_hh = parts[:2]
        self.b_ih, self.b_hh = parts[2:4] if bias else (None, None)
        self.w_hr = parts[-1] if projected else None

    def parts(self) -> list[Any]:
        """Those that there are."""
        return [part for part in (getattr(self, name) for name in self.__slots__) if part is not None]

    def wide(self) -> Weights:
        """The same with 16-bit weights in float32, but that of the inputs, whose products are made of 16 bits."""
        found = Weights.__new__(Weights)
        found.w_ih = self.w_ih
        for name in ("b_hh", "b_ih", "w_hh", "w_hr"):
            setattr(found, name, up(getattr(self, name))[0])
        return found


class Plan:
    """What a layer is: its kind, the sizes of its steps, its direction, and which weights it has."""

    __slots__ = ("bias", "mode", "projected", "reverse", "sizes", "steps")

    def __init__(self, mode: str, sizes: list[int], reverse: bool, bias: bool, projected: bool):
        self.mode, self.sizes, self.reverse, self.bias, self.projected = mode, sizes, reverse, bias, projected
        self.steps = kernels.steps_of(sizes, reverse)

    def forward(self, x: Any, state: Any, w: Weights, keep: bool) -> tuple[Any, Any, Any]:
        """On arrays: outputs, last state, and what backward needs beside them.

        16-bit sequences are computed in float32, and rounded at the end; only their inputs' product is of 16 bits.
        """
        if is_half(x.dtype):
            found = self._forward(x, up(*state), w.wide(), keep)
            return _narrow(found[0], x.dtype), *(tuple(_narrow(a, x.dtype) for a in arrays) for arrays in found[1:])
        return self._forward(x, state, w, keep)

    def _forward(self, x: Array, state: list[Array], w: Weights, keep: bool) -> tuple[Any, Any, Any]:
        gates = product(x, w.w_ih.T)
        if w.b_ih is not None:
            add_row(gates, w.b_ih if self.mode == "GRU" else w.b_ih + w.b_hh)
        if self.mode == "LSTM":
            out, h, c, cells = kernels.lstm(gates, self.steps, state[0], state[1], w.w_hh, w.w_hr, keep)
            return out, (h, c), (gates, cells)
        if self.mode == "GRU":
            out, h, inner = kernels.gru(gates, self.steps, state[0], w.w_hh, w.b_hh, keep)
            return out, (h,), (gates, inner)
        out, h = kernels.rnn(gates, self.steps, state[0], w.w_hh, self.mode == "RNN_RELU")
        return out, (h,), ()

    def backward(
        self, d_out: Array, d_last: Any, kept: Any, out: Array, state: Any, w: Weights
    ) -> tuple[Any, Any, Any]:
        """On arrays: gradients of the inputs' part of the gates, of the weights but w_ih, and of the first state.

        Of 16-bit sequences all are in float32; slopes are rounded where they are factors of a product over all steps.
        """
        half, first = out.dtype if is_half(out.dtype) else None, state[0]
        if half is None:
            d_gates, d_state, dw_hr, d_new = self._slopes(d_out, d_last, kept, out, state, w)
        else:
            d_out, *d_last = up(d_out, *d_last)
            d_gates, d_state, dw_hr, d_new = self._slopes(d_out, d_last, up(*kept), up(out)[0], up(*state), w.wide())
        dw_hh = kernels.state_weight_gradient(as_factor(d_gates, half), out, first, self.steps)
        db_hh = sum_rows(d_gates) if self.bias else None
        db_ih = db_hh
        if d_new is not None:
            d_gates[:, -d_new.shape[1] :] = d_new
            db_ih = sum_rows(d_gates) if self.bias else None
        grads = [dw_hh, *((db_ih, db_hh.copy()) if db_hh is not None else ()), *(() if dw_hr is None else (dw_hr,))]
        return d_gates, grads, d_state

    def _slopes(
        self, d_out: Array, d_last: list[Array], kept: list[Array], out: Array, state: list[Array], w: Weights
    ) -> tuple[Any, Any, Any, Any]:
        """Gradients of the state's part of the gates, of the first state, of w_hr, and of a GRU's n before tanh."""
        if self.mode == "LSTM":
            gates, cells = kept
            d_gates, dw_hr, d_state = kernels.lstm_backward(
                d_out, (d_last[0], d_last[1]), gates, cells, state[1], self.steps, w.w_hh, w.w_hr
            )
            return d_gates, d_state, dw_hr, None
        if self.mode == "GRU":
            gates, inner = kept
            d_gates, d_new, dh = kernels.gru_backward(d_out, d_last[0], gates, inner, out, state[0], self.steps, w.w_hh)
            return d_gates, (dh,), None, d_new
        d_gates, dh = kernels.rnn_backward(d_out, d_last[0], out, self.steps, w.w_hh, self.mode == "RNN_RELU")
        return d_gates, (dh,), None, None

    def products(self, d_gates: Array, x: Array, w_ih: Array, needs: tuple[bool, bool]) -> tuple[Any, Any]:
        """On arrays: gradients of the inputs and of w_ih."""
        d_gates = as_factor(d_gates, x.dtype if is_half(x.dtype) else None)
        dx = product(d_gates, w_ih) if needs[0] else None
        return dx, product(d_gates.T, np.ascontiguousarray(x)) if needs[1] else None

    def recorded(self, x: Tensor, state: tuple[Tensor, ...], parts: object) -> tuple[Any, Any]:
        """The same from operators, on tensors: outputs and last state."""
        w = Weights(parts, self.bias, self.projected)
        projected, bias = recurrent.project(self.mode, x, w.w_ih, w.b_ih, w.b_hh)
        step = recurrent.STEPS[self.mode](w.w_hh, bias, *((w.w_hr,) if self.projected else ()))
        outputs, last = recurrent.run(step, projected.split(self.sizes), state, self.reverse)
        return recurrent.joined(outputs), last


def as_factor(slopes: Array, half: Any) -> Array:
    """Slopes in float32 as a factor beside numbers of 16 bits, or as they are where `half` is None."""
    return slopes if half is None else rounded(slopes, half)


def _narrow(array: Array | None, dtype: Any) -> Any:
    """`array`, or None, in `dtype`: copied only where it has another."""
    if array is None or array.dtype == dtype:
        return array
    return rounded(array, dtype) if is_half(dtype) else array.astype(dtype)


class _Layer(Function):
    """The node.  Arguments: plan, number of states n, x (total, I), n states, weights."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, n: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        arrays = [t._array for t in tensors]
        x, state, parts = np.ascontiguousarray(arrays[0]), arrays[1 : 1 + n], arrays[1 + n :]
        out, last, kept = plan.forward(x, state, Weights(parts, plan.bias, plan.projected), True)
        ctx.plan, ctx.n, ctx.count_kept = plan, n, len(kept)
        result = wrap(out)
        ctx.save_for_backward(*tensors, result, *(wrap(k) for k in kept))
        return (result, *(wrap(s) for s in last))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        saved = ctx.saved_tensors  # asked for once: in a checkpoint it is computed again each time, in a store read
        end = -1 - ctx.count_kept
        *tensors, out = saved[: end + 1 or None]
        if modes.grad or (modes.levels and owned((*grads, *tensors))):
            return _differentiably(ctx, tensors, grads)
        kept = [t._array for t in saved[len(tensors) + 1 :]]
        plan, n = ctx.plan, ctx.n
        x, *rest = (t._array for t in tensors)
        state, w = rest[:n], Weights(rest[n:], plan.bias, plan.projected)
        d_out, *d_last = (g._array for g in grads)
        d_gates, d_weights, d_state = plan.backward(d_out, d_last, kept, out._array, state, w)
        needs = ctx.needs_input_grad[2:]
        dx, dw_ih = plan.products(d_gates, x, w.w_ih, (needs[0], needs[1 + n]))
        found = [_narrow(g, x.dtype) for g in (dx, *d_state, dw_ih, *d_weights)]
        return (None, None, *(wrap(g) if g is not None and need else None for g, need in zip(found, needs)))


def _differentiably(ctx: Any, tensors: Any, grads: tuple[Tensor, ...]) -> tuple[Any, ...]:
    """The gradients as functions of inputs and cotangents, through operators."""
    needs, create = ctx.needs_input_grad[2:], modes.grad  # for levels, nothing is recorded
    with enable_grad():
        fresh = [t.view_as(t) if need else t.detach() for t, need in zip(tensors, needs)]
        out, last = ctx.plan.recorded(fresh[0], tuple(fresh[1 : 1 + ctx.n]), fresh[1 + ctx.n :])
        wanted = [t for t, need in zip(fresh, needs) if need]
        found = iter(grad((out, *last), wanted, grads, create_graph=create, allow_unused=True))
    return (None, None, *(next(found) if need else None for need in needs))


def usable(tensors: tuple[Tensor, ...]) -> bool:
    """Whether the kernels can run: NumPy arrays of one real floating dtype, in memory, of no functional level."""
    if special.meta is not None and special.meta.owns(tensors):
        return False
    kind = getattr(tensors[0], "_array", None)
    if not isinstance(kind, np.ndarray) or not (kind.dtype in (np.float32, np.float64) or is_half(kind.dtype)):
        return False
    if modes.levels and owned(tensors):
        return False
    return all(isinstance(t._array, np.ndarray) and t._array.dtype == kind.dtype for t in tensors)


def layer(
    mode: str, x: Tensor, state: tuple[Tensor, ...], parts: Any, sizes: list[int], reverse: bool, bias: bool
) -> tuple[Any, Any]:
    """One layer and direction.

    x: (total, I), the rows of all steps; state: first state, (B, P) and for an LSTM (B, H); parts: the weights in
    PyTorch's order; sizes: rows of each step.  Returns outputs (total, P) and the last state.
    """
    if modes.autocast is not None and mode != "GRU":
        x, state, parts = modes.autocast("lower", [x, tuple(state), tuple(parts)])
    tensors = (x, *state, *parts)
    if has_torch_function(tensors):
        return handle_torch_function(layer, tensors, mode, x, state, parts, sizes, reverse, bias)
    plan = Plan(mode, sizes, reverse, bias, len(parts) > (4 if bias else 2))
    if modes.levels and getattr(modes.levels[-1], "dry", False):  # an estimate: arrays have shapes only
        plan = modes.levels[-1].recurrent(plan)
    if not usable(tensors):
        return plan.recorded(x, state, parts)
    if modes.grad and any(t.requires_grad for t in tensors):
        out, *last = _Layer.apply(plan, len(state), *tensors)
        return out, tuple(last)
    arrays = [t._array for t in tensors]
    w = Weights(arrays[1 + len(state) :], bias, plan.projected)
    out, last, _ = plan.forward(np.ascontiguousarray(arrays[0]), arrays[1 : 1 + len(state)], w, False)
    return wrap(out), tuple(wrap(s) for s in last)
