"""Recurrent cells: one step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.nn import init, recurrent
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor


class RNNCellBase(Module):
    """What the cells share.

    weight_ih: (num_chunks * hidden_size, input_size), weight_hh: (num_chunks * hidden_size, hidden_size), bias_ih and
    bias_hh: (num_chunks * hidden_size), all uniform in +-1 / sqrt(hidden_size) at first.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        options = {"device": device, "dtype": dtype}
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(ops.empty((rows, input_size), **options))
        self.weight_hh = Parameter(ops.empty((rows, hidden_size), **options))
        self.register_parameter("bias_ih", Parameter(ops.empty(rows, **options)) if bias else None)
        self.register_parameter("bias_hh", Parameter(ops.empty(rows, **options)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and what differs from the defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return ", ".join(parts if nonlinearity == "tanh" else [*parts, f"nonlinearity={nonlinearity}"])

    def _step(self, cell: Callable[..., Any], input: Tensor, states: list[Any]) -> Any:
        """Run `cell` on the input and the states, with a batch dimension added if there is none."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for i, state in enumerate(states):
            if state is not None and state.ndim not in (1, 2):
                which = f"hx[{i}]" if len(states) > 1 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.ndim}D instead")
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        ready = [self._state(x, state, batched) for state in states]
        hidden = tuple(ready) if len(ready) > 1 else ready[0]
        result = cell(x, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if batched:
            return result
        return tuple(r.squeeze(0) for r in result) if isinstance(result, tuple) else result.squeeze(0)

    def _state(self, x: Tensor, state: Tensor | None, batched: bool) -> Tensor:
        if state is None:
            return ops.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
        return state if batched else state.unsqueeze(0)


class RNNCell(RNNCellBase):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with max(., 0) for `nonlinearity="relu"`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size), (N, hidden_size) or without N -> (N, hidden_size).  The state is zero by default."""
        cells = {"tanh": recurrent.rnn_tanh_cell, "relu": recurrent.rnn_relu_cell}
        if self.nonlinearity not in cells:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(cells[self.nonlinearity], input, [hx])


class LSTMCell(RNNCellBase):
    """One step of an LSTM; see LSTM."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
        """(N, input_size), two of (N, hidden_size) or without N -> two of (N, hidden_size)."""
        states = [None, None] if hx is None else list(hx)
        return self._step(recurrent.lstm_cell, input, states)


class GRUCell(RNNCellBase):
    """One step of a GRU; see GRU."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(N, input_size), (N, hidden_size) or without N -> (N, hidden_size)."""
        return self._step(recurrent.gru_cell, input, [hx])
