"""Recurrences: one step of each kind of cell, and a whole sequence of steps, in terms of operators.

The projection of the inputs does not depend on the state: `functional.linear` makes it for the whole sequence at once,
and a step adds the state's part.  Gates lie side by side in one matrix, in PyTorch's order: LSTM input, forget, cell,
output; GRU reset, update, new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.ops.elementwise.recurrent import fits, lstm_cell_op
from rushlight.overrides import has_torch_function
from rushlight.overrides.attach import function
from rushlight.tensor import Tensor

Cell = TypeVar("Cell", bound=Callable[..., Any])
State = tuple[Any, ...]  # (h,), or (h, c) of an LSTM
Step = Callable[[Any, State], State]


def tanh_step(w_hh: Tensor, b_hh: Any) -> Step:
    """A step of the plain recurrence with tanh.  The projection (B, H) already has b_hh unless it is given."""

    def step(projected: Tensor, state: State) -> State:
        return (ops.tanh(projected + F.linear(state[0], w_hh, b_hh)),)

    return step


def relu_step(w_hh: Tensor, b_hh: Any) -> Step:
    """A step of the plain recurrence with max(., 0)."""

    def step(projected: Tensor, state: State) -> State:
        return (ops.relu(projected + F.linear(state[0], w_hh, b_hh)),)

    return step


def lstm_step(w_hh: Tensor, b_hh: Any, w_hr: Tensor | None = None) -> Step:
    """A step of the long short-term memory (Hochreiter and Schmidhuber, 1997); w_hr projects its output.

    w_hh: (4 H, H) or, with w_hr (P, H), (4 H, P).
    """

    def step(projected: Tensor, state: State) -> State:
        h, c = state
        given = projected, F.linear(h, w_hh, b_hh), c
        if fits(*given) and not has_torch_function(given):
            h, c, _ = lstm_cell_op(*given)
        else:
            i, f, g, o = (given[0] + given[1]).chunk(4, 1)
            c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
            h = ops.sigmoid(o) * ops.tanh(c)
        return (h if w_hr is None else F.linear(h, w_hr)), c

    return step


def gru_step(w_hh: Tensor, b_hh: Tensor | None) -> Step:
    """A step of the gated recurrent unit (Cho et al., 2014).  w_hh: (3 H, H)."""

    def step(projected: Tensor, state: State) -> State:
        (h,) = state
        xr, xz, xn = projected.chunk(3, 1)
        hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, 1)
        reset, update = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        new = ops.tanh(xn + reset * hn)
        return (new + update * (h - new),)

    return step


STEPS: dict[str, Callable[..., Step]] = {
    "RNN_TANH": tanh_step,
    "RNN_RELU": relu_step,
    "LSTM": lstm_step,
    "GRU": gru_step,
}


def project(mode: str, inputs: Tensor, w_ih: Any, b_ih: Any, b_hh: Tensor | None) -> tuple[Any, Any]:
    """The inputs' part of all gates of the whole sequence, and the bias left for each step.

    inputs: (..., I) -> (..., gates).  Both biases are added here; a GRU's second one is multiplied by the reset gate,
    so that it stays with the step.
    """
    if mode == "GRU" or b_ih is None:
        return F.linear(inputs, w_ih, b_ih), b_hh
    return F.linear(inputs, w_ih, b_ih + b_hh), None


def run(step: Step, projected: Sequence[Any], state: State, reverse: bool = False) -> tuple[list[Any], State]:
    """Run the steps over a sequence.  projected: T of (B_t, gates), B_t not growing; state: of (B_0, H).

    A sequence that has ended keeps its state; reversed, it begins where its last element is.  Returns the outputs
    (B_t, H) in the order of the inputs and the last state (B_0, H).
    """
    if reverse:
        return _run_reversed(step, projected, state)
    outputs, ended = [], []
    n = projected[0].shape[0] if projected else 0
    for gates in projected:
        if gates.shape[0] < n:
            n = gates.shape[0]
            ended.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        state = step(gates, state)
        outputs.append(state[0])
    if ended:
        state = tuple(ops.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
    return outputs, state


def _run_reversed(step: Step, projected: Sequence[Any], first: State) -> tuple[list[Any], State]:
    outputs: list[Any] = []
    n = projected[-1].shape[0] if projected else 0
    whole = not projected or projected[0].shape[0] == n
    state = first if whole else tuple(s[:n] for s in first)
    for gates in reversed(projected):
        if gates.shape[0] > n:
            state = tuple(ops.cat((s, f[n : gates.shape[0]])) for s, f in zip(state, first, strict=True))
            n = gates.shape[0]
        state = step(gates, state)
        outputs.append(state[0])
    outputs.reverse()
    return outputs, state


def joined(outputs: list[Any]) -> Tensor:
    """The outputs of all steps, one after the other: (total, H)."""
    return ops.cat(outputs)


# One step under PyTorch's names --------------------------------------------------------------------


def _one(
    mode: str, x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> State:
    _check_cell(x, state, w_ih, w_hh)
    projected, bias = project(mode, x, w_ih, b_ih, b_hh)
    return STEPS[mode](w_hh, bias)(projected, state)


def _check_cell(x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor) -> None:
    if x.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {x.shape[-1]} expected {w_ih.shape[1]}")
    for i, s in enumerate(state):
        if s.shape[0] != x.shape[0]:
            raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden{i} batch size {s.shape[0]}")
        if s.shape[-1] != w_hh.shape[1]:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {s.shape[-1]}, expected {w_hh.shape[1]}")


def cell(fn: Cell) -> Cell:
    """A cell as a public function of torch, which modes and classes can override as a whole."""
    return cast("Cell", function(fn, fn.__name__, ""))


@cell
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step: `tanh(w_ih input + b_ih + w_hh hx + b_hh)`.  input: (B, I), hx: (B, H) -> (B, H)."""
    return _one("RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@cell
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step: `relu(w_ih input + b_ih + w_hh hx + b_hh)`.  input: (B, I), hx: (B, H) -> (B, H)."""
    return _one("RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@cell
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU.  input: (B, I), hx: (B, H) -> (B, H)."""
    return _one("GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@cell
def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, ...],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """One step of an LSTM.  input: (B, I), hx: two of (B, H) -> two of (B, H)."""
    return _one("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
