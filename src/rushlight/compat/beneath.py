"""Functions at the top of torch that PyTorch's layers and functionals call: positional, with enumerations as numbers."""

from __future__ import annotations

from typing import Any

from rushlight.basics import caller
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.named import Named, named
from rushlight.storage import Storage
from rushlight.tensor import layout

__all__ = ["affine_grid_generator", "binary_cross_entropy_with_logits", "from_file", "gru", "has_cuda", "has_cudnn",
           "has_lapack", "has_mkl", "has_mps", "has_openmp", "has_spectral", "is_warn_always_enabled", "lstm",
           "norm_except_dim", "rnn_relu", "rnn_tanh", "set_warn_always"]  # fmt: skip

has_lapack = has_spectral = has_openmp = True  # NumPy brings the first two
has_mkl = has_cuda = has_cudnn = has_mps = False
functional = Named("nn.functional")
REDUCTIONS = ("none", "mean", "sum")


def affine_grid_generator(theta: object, size: object, align_corners: bool) -> Any:
    """The grid of an affine map, as `nn.functional.affine_grid`.  theta: (N, D, D + 1) -> (N, *S, D)"""
    return functional.affine_grid(theta, size, align_corners)


def binary_cross_entropy_with_logits(input: object, target: object, weight: object = None, pos_weight: object = None,
                                     reduction: int = 0) -> Any:  # fmt: skip
    """As the functional of that name.  reduction: 0 for none, 1 for the mean, 2 for the sum; else ValueError."""
    if reduction not in (0, 1, 2):
        raise ValueError(
            f"binary_cross_entropy_with_logits(): reduction must be 0 (none), 1 (mean) or 2 (sum), got {reduction!r}"
        )
    return functional.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight,
                                                       reduction=REDUCTIONS[reduction])  # fmt: skip


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The p-norm over all dimensions but one, which are kept with size 1; over all for dim=-1.  (*) -> (1, .., N, .., 1)"""
    if dim == -1:
        return v.norm(pow)
    dim = wrap_dim(dim, v.dim())
    others = [d for d in range(v.dim()) if d != dim]
    return named.norm(v, pow, others, keepdim=True) if others else named.norm(v.unsqueeze(-1), pow, -1)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    pin_memory: bool = False,
) -> Any:
    """A tensor on the bytes of a file.  -> (size), of the default dtype unless one is given

    shared: whether changes go to the file, which is made as long as needed.  Raises as `UntypedStorage.from_file`.
    """
    made = named.empty(0, dtype=dtype, device=device)
    storage = Storage.from_file(filename, bool(shared), int(size or 0) * made.element_size())
    return made.set_(storage, 0, (int(size or 0),))


def set_warn_always(b: bool) -> None:
    """Whether warnings come each time instead of once for each line.  Raises TypeError for what is no bool."""
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(): expected a bool, got {type(b).__name__}")
    caller.settings["always"] = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given last, False at first."""
    return caller.settings["always"]


# Recurrent layers -----------------------------------------------------------------------------------------------------


def _recurrent(kind: str, first: Any, second: Any, third: Any, *rest: Any, nonlinearity: str = "tanh") -> Any:
    """A stack of recurrent layers with weights that are given, of a sequence or of packed data.

    Sequence: (input, state, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first); packed:
    (data, batch_sizes, state, weights, has_biases, num_layers, dropout, train, bidirectional).
    """
    from rushlight.nn.utils.rnn import PackedSequence

    if isinstance(third, (list, tuple)) and isinstance(rest[0], bool):
        x, state, weights, options, batch_first = first, second, third, rest[:5], rest[5]
    else:
        x, state, weights, options, batch_first = PackedSequence(first, second), third, rest[0], rest[1:], False
    module = _module(kind, weights, state, options, batch_first, nonlinearity)
    output, last = module(x, tuple(state) if kind == "LSTM" else state)
    output = output.data if isinstance(x, PackedSequence) else output
    return (output, *last) if kind == "LSTM" else (output, last)


def _module(kind: str, weights: Any, state: Any, options: Any, batch_first: bool, nonlinearity: str) -> Any:
    """A module without weights of its own that runs with the given ones."""
    from rushlight import nn

    bias, layers, dropout, train, bidirectional = options
    hidden = (state[1] if kind == "LSTM" else state).shape[-1]
    extra: dict[str, Any] = {"nonlinearity": nonlinearity} if kind == "RNN" else {}
    if kind == "LSTM" and state[0].shape[-1] != hidden:
        extra["proj_size"] = state[0].shape[-1]
    made = getattr(nn, kind)(weights[0].shape[-1], hidden, layers, bias=bias, batch_first=batch_first, dropout=dropout,
                             bidirectional=bidirectional, device="meta", **extra)  # fmt: skip
    made._flat_weights = list(weights)
    return made.train(train)


def lstm(*args: object) -> Any:
    """LSTM layers with given weights: output, last states of the layers and of their cells.  See `nn.LSTM`."""
    return _recurrent("LSTM", *args)


def gru(*args: object) -> Any:
    """GRU layers with given weights: output and last state.  See `nn.GRU`."""
    return _recurrent("GRU", *args)


def rnn_tanh(*args: object) -> Any:
    """Recurrent layers of tanh with given weights: output and last state.  See `nn.RNN`."""
    return _recurrent("RNN", *args)


def rnn_relu(*args: object) -> Any:
    """Recurrent layers of relu with given weights: output and last state.  See `nn.RNN`."""
    return _recurrent("RNN", *args, nonlinearity="relu")
