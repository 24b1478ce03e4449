"""Recurrent networks over whole sequences: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.state import modes
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import init, rnn_fused
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from rushlight.nn.modules.utils import unusual
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence
from rushlight.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size, hidden_size: features of input and state.
        num_layers: layers on top of each other.
        bias: whether the two biases exist.
        batch_first: (N, L, H) instead of (L, N, H); the states are not concerned.
        dropout: probability of dropping elements of every layer's output but the last one's, in training.
        bidirectional: a second recurrence from the end to the start; outputs are joined.
        proj_size: size to which an LSTM's output is projected, 0 for none.

    Parameters of layer k: weight_ih_l[k] (gates * hidden, input), weight_hh_l[k] (gates * hidden, output),
    bias_ih_l[k], bias_hh_l[k] (gates * hidden), weight_hr_l[k] (proj, hidden), with _reverse for the second direction;
    all uniform in +-1 / sqrt(hidden_size) at first.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        _check_types(input_size, hidden_size, bias, batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        _check_dropout(dropout, num_layers)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in self._suffixes():
                self._add_layer(layer, suffix, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _suffixes(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _add_layer(self, layer: int, suffix: str, options: dict[str, Any]) -> None:
        """The parameters of one layer and direction."""
        gates = _GATES[self.mode] * self.hidden_size
        output = self.proj_size or self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, self.input_size if layer == 0 else output * len(self._suffixes())),
            "weight_hh": (gates, output),
        }
        if self.bias:
            shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            names.append(f"{kind}_l{layer}{suffix}")
            setattr(self, names[-1], Parameter(ops.empty(shape, **options)))
        self._all_weights.append(names)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights that `forward` uses, in the order of their names: the parameters, or what was assigned."""
        given: list[Any] | None = self.__dict__.get("_given_weights")
        return [getattr(self, name, None) for name in self._flat_weights_names] if given is None else given

    def _use(self, weights: list[Any]) -> None:
        """Have `forward` use other weights than the parameters.  Raises RuntimeError for another number of them."""
        names = self._flat_weights_names
        if len(weights) != len(names):
            raise RuntimeError(f"{self._get_name()}._flat_weights: expected {len(names)} weights ({', '.join(names)}), got "
                               f"{len(weights)}")  # fmt: skip
        self.__dict__["_given_weights"] = list(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_flat_weights":  # which Module.__setattr__ would refuse: a property without a setter
            return self._use(value)
        super().__setattr__(name, value)
        if "_given_weights" in self.__dict__ and name in self._flat_weights_names:
            del self.__dict__["_given_weights"]  # as in PyTorch, where a new parameter brings all of them back

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        """As every module; then `forward` uses the parameters again."""
        super()._apply(fn, recurse)
        self.__dict__.pop("_given_weights", None)
        return self

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Accepted for compatibility: parameters need not lie side by side here."""

    def reset_parameters(self) -> None:
        """Draw new weights."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and what differs from the defaults."""
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *unusual(self, **usual)])

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("proj_size", 0)
        super().__setstate__(state)

    # Checks ----------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise ValueError or RuntimeError for an input of a wrong dtype or size."""
        weight = self._weights_of(0)[0]
        if input.dtype != weight.dtype and modes.autocast is None:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.ndim != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the first state for this input."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0] if self.batch_first else input.shape[1]
        return self.num_layers * len(self._suffixes()), batch, self.proj_size or self.hidden_size

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state, or the two of an LSTM, with its sequences in another order; as it is for None."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(part.index_select(1, permutation) for part in hx)
        return hx.index_select(1, permutation)

    def check_hidden_size(
        self, hx: Tensor, expected: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise RuntimeError unless a state has the expected shape."""
        if tuple(hx.shape) != tuple(expected):
            raise RuntimeError(msg.format(expected, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise for an input or first state (a tensor; of an LSTM two of them) of a wrong size."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            self.check_hidden_size(hidden, expected)
            return
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], (*expected[:2], self.hidden_size), "Expected hidden[1] size {}, got {}")

    # Forward ---------------------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, ...]:
        """Run the whole sequence.

        Args:
            input: (L, N, input_size), (N, L, input_size) with `batch_first`, (L, input_size), or a PackedSequence.
            hx: the first state (num_layers * directions, N, output), for an LSTM a pair of it and the cell's; zeros
                by default.

        Returns (output (L, N, directions * output) or a PackedSequence, last state).
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        batched = input.ndim == 3
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        state = self._first_state(input, hx, None, batched)
        self.check_forward_args(input, self._as_given(state), None)
        steps = input.transpose(0, 1) if self.batch_first else input
        output, last = self._layers(steps, state, None)
        if self.batch_first:
            output = output.transpose(0, 1)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            last = tuple(s.squeeze(1) for s in last)
        return output, self._as_given(last)

    def _forward_packed(self, packed: PackedSequence, hx: object) -> tuple[Any, ...]:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        state = self._first_state(data, hx, batch_sizes, True)
        if sorted_indices is not None and hx is not None:
            state = tuple(s.index_select(1, sorted_indices) for s in state)
        self.check_forward_args(data, self._as_given(state), batch_sizes)
        output, last = self._layers(data, state, [int(n) for n in batch_sizes])
        if unsorted_indices is not None:
            last = tuple(s.index_select(1, unsorted_indices) for s in last)
        packed_output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed_output, self._as_given(last)

    def _as_given(self, state: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
        return state if self.mode == "LSTM" else state[0]

    def _first_state(self, input: Any, hx: Any, batch_sizes: Any, batched: bool) -> tuple[Tensor, ...]:
        """The first state as a tuple of tensors with a batch dimension."""
        if hx is None:
            shape = self.get_expected_hidden_size(input, batch_sizes)
            options = {"dtype": input.dtype, "device": input.device}
            h = ops.zeros(shape, **options)
            return (h, ops.zeros((*shape[:2], self.hidden_size), **options)) if self.mode == "LSTM" else (h,)
        state = tuple(hx) if self.mode == "LSTM" else (hx,)
        dims = 3 if batched else 2
        if any(s.ndim != dims for s in state):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            names = "hx and cx" if self.mode == "LSTM" else "hx"
            got = " and ".join(f"{s.ndim}-D" for s in state) + (" tensors" if len(state) > 1 else " tensor")
            raise RuntimeError(f"For {kind} input, {names} should also be {dims}-D but got {got}")
        return state if batched else tuple(s.unsqueeze(1) for s in state)

    def _layers(self, inputs: Tensor, state: tuple[Tensor, ...], batch_sizes: list[int] | None) -> tuple[Any, Any]:
        """All layers on (L, N, I), or on packed data (total, I) of the given batch sizes."""
        directions = len(self._suffixes())
        lasts = []
        if batch_sizes is None and inputs.shape[0] == 0:
            raise RuntimeError(f"{self._get_name()}: Expected sequence length to be larger than 0 in RNN")
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                k = layer * directions + direction
                output, last = self._direction(k, inputs, tuple(s[k] for s in state), batch_sizes, direction == 1)
                outputs.append(output)
                lasts.append(last)
            inputs = outputs[0] if directions == 1 else ops.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                inputs = F.dropout(inputs, self.dropout, self.training)
        return inputs, tuple(ops.stack(parts) for parts in zip(*lasts, strict=True))

    def _weights_of(self, k: int) -> list[Any]:
        """Those of one layer and direction."""
        given = self.__dict__.get("_given_weights")
        if given is None:
            return [getattr(self, name) for name in self._all_weights[k]]
        start = sum(len(names) for names in self._all_weights[:k])
        return given[start : start + len(self._all_weights[k])]

    def _direction(
        self, k: int, inputs: Tensor, state: tuple[Tensor, ...], batch_sizes: list[int] | None, reverse: bool
    ) -> tuple[Any, Any]:
        """One direction of one layer: its outputs, laid out as the inputs, and its last state."""
        weights = self._weights_of(k)
        if batch_sizes is not None:
            return rnn_fused.layer(self.mode, inputs, state, weights, batch_sizes, reverse, self.bias)
        steps, batch = inputs.shape[:2]
        rows = inputs.reshape(steps * batch, inputs.shape[2])
        output, last = rnn_fused.layer(self.mode, rows, state, weights, [batch] * steps, reverse, self.bias)
        return output.view(steps, batch, output.shape[1]), last


def _check_types(input_size: int, hidden_size: int, bias: bool, batch_first: bool) -> None:
    for name, value, kind in (("input_size", input_size, int), ("hidden_size", hidden_size, int),
                              ("bias", bias, bool), ("batch_first", batch_first, bool)):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")


def _check_dropout(dropout: float, num_layers: int) -> None:
    is_number: bool = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, got "
            f"{dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
        )


def _check_sizes(input_size: int, hidden_size: int, num_layers: int, proj_size: int) -> None:
    """Raise ValueError for sizes that make no network."""
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero, got {value}")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError(f"proj_size has to be smaller than hidden_size, got {proj_size} and {hidden_size}")


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if options:
        raise TypeError(f"got an unexpected keyword argument '{next(iter(options))}'")


class RNN(RNNBase):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with max(., 0); see RNNBase for the arguments.

    Raises ValueError for a `nonlinearity` other than "tanh" and "relu".

    >>> import rushlight as torch
    >>> output, h = torch.nn.RNN(2, 3)(torch.ones(5, 4, 2))
    >>> output.shape, h.shape
    (torch.Size([5, 4, 3]), torch.Size([1, 4, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        **options: object,
    ) -> None:
        _refuse_projection(options)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); see RNNBase for the arguments.

    `c' = f * c + i * g`, `h' = o * tanh(c')` with gates i, f, g, o; `proj_size` as in Sak et al. (2014).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the first cell for this input."""
        return *self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size


class GRU(RNNBase):
    """Gated recurrent unit (Cho et al., 2014); see RNNBase for the arguments.

    `h' = (1 - z) * n + z * h`, `n = tanh(W_in x + b_in + r * (W_hn h + b_hn))` with gates r and z.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        **options: object,
    ) -> None:
        _refuse_projection(options)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
