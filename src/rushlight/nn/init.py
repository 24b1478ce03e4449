"""Filling tensors with initial weights, in place and outside the graph."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from rushlight.basics import caller, dtypes
from rushlight.basics.caller import warn
from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.generator import Generator
from rushlight.nn._linalg import linalg
from rushlight.overrides.protocol import INERT
from rushlight.overrides.questions import handle_torch_function, has_torch_function
from rushlight.tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = ("linear", "sigmoid", *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights are scaled before this nonlinearity.

    `param` is the slope of "leaky_relu" (0.01 by default).  Raises ValueError for unknown names.

    >>> import rushlight as torch
    >>> torch.nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + _slope(param) ** 2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def _slope(param: float | None) -> float:
    if param is None:
        return 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return param


def overridable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, which a tensor of a class that overrides functions is asked for first: with all arguments by name, as in PyTorch."""
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def asking(tensor: object, *args: object, **kwargs: object) -> Any:
        if tensor.__class__ in INERT or not has_torch_function((tensor,)):
            return fn(tensor, *args, **kwargs)
        given = signature.bind(tensor, *args, **kwargs)
        given.apply_defaults()
        return handle_torch_function(asking, (tensor,), **given.arguments)

    return asking


@overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with values uniform in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal values."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal values cut off outside [a, b]: those outside are drawn again.

    Where few are inside, uniform values of [a, b] are kept by their density, and where few of these are, those behind the nearer
    bound by that of an exponential. Source: Robert, Simulation of truncated normal variables (1995).
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    if tensor.device.type == "meta":  # which has no values that could be looked at
        return tensor
    low, high = (_normal_cdf((limit - mean) / std) for limit in (a, b))
    with no_grad():
        if high - low > 0.25:
            return _redrawn(tensor.normal_(mean, std, generator=generator), mean, std, a, b, generator)
        return _kept_by_density(tensor, mean, std, a, b, generator)


def _redrawn(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Tensor:
    """Draw again for the elements outside [a, b] until there are none: numbers for all, as PyTorch draws."""
    if tensor.numel() == 0 or (float(tensor.min()) >= a and float(tensor.max()) <= b):
        return tensor
    outside = (tensor < a).logical_or_(tensor > b)
    while bool(outside.any()):
        fresh = ops.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(ops.where(outside, fresh, tensor))
        outside = (tensor < a).logical_or_(tensor > b)
    return tensor


def _kept_by_density(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Tensor:
    """Fill with values of [a, b], each kept by its density beside the largest there: numbers for all, as PyTorch draws."""
    peak = min(max(mean, a), b)
    far = (b - a) * abs(peak - mean) > 100 * std * std  # of uniform values one of as many would be kept
    missing = ops.ones_like(tensor, dtype=dtypes.bool)
    while bool(missing.any()):
        if far:
            drawn = ops.empty_like(tensor).exponential_(abs(peak - mean) / std**2, generator=generator)
            least = (drawn / std) ** 2 / -2
            drawn = peak + drawn * (1 if peak > mean else -1)
        else:
            drawn = ops.empty_like(tensor).uniform_(a, b, generator=generator)
            least = ((peak - mean) ** 2 - (drawn - mean) ** 2) / (2 * std**2)
        kept = (ops.empty_like(tensor).uniform_(generator=generator).log_() > least).logical_not_()  # NaN ends, too
        kept.logical_and_(missing).logical_and_(drawn >= a).logical_and_(drawn <= b)
        tensor.copy_(ops.where(kept, drawn, tensor))
        missing.logical_and_(kept.logical_not_())
    return tensor


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


@overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Tensor:
    """Fill with 0."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity.  Raises ValueError for other dimensions."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weights (out, in / groups, *kernel) of a convolution pass its channels through.

    Raises ValueError unless there are 3, 4 or 5 dimensions and `groups` divides the first.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}")
    if tensor.shape[0] % groups != 0:
        raise ValueError(f"dim 0 must be divisible by groups, got {tensor.shape[0]} and {groups}")
    if tensor.device.type == "meta":
        return tensor
    per_group = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many values flow into and out of a unit of weights (out, in, *kernel).  Raises ValueError below 2-d."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill uniformly with standard deviation `gain * sqrt(2 / (fan in + fan out))`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal values of standard deviation `gain * sqrt(2 / (fan in + fan out))`.

    Source: Glorot and Bengio (2010).
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation, or None, with a warning, where there is nothing to fill."""
    if 0 in tensor.shape:
        caller.warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly with standard deviation `gain / sqrt(fan)`; `a` is the slope of "leaky_relu".

    Source: He et al., Delving deep into rectifiers (2015).
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal values of standard deviation `gain / sqrt(fan)`; `a` is the slope of "leaky_relu".

    Source: He et al., Delving deep into rectifiers (2015).
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a random (semi-)orthogonal matrix (the first dimension by all others), times `gain`.

    Raises ValueError below 2 dimensions.  Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks (2013).
    """
    if tensor.ndim < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported, got {tensor.ndim}")
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        drawn = ops.empty((rows, columns), dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        q, r = linalg("qr")(drawn if rows >= columns else drawn.t())
        q = q * r.diagonal().sign()  # makes the distribution uniform
        tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape)).mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal values, a fraction `sparsity` of each column with zeros.

    Raises ValueError for other dimensions.  Source: Martens, Deep learning via Hessian-free optimization (2010).
    """
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[ops.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The former name, without underscore, of a function."""
    new = function.__name__
    old = new[:-1]

    def renamed(*args: object, **kwargs: object) -> Tensor:
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = old
    renamed.__doc__ = f"Deprecated: use `{new}`."
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Generator | None = None) -> object:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> object:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None = None
) -> object:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> object:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> object:
    return zeros_(tensor)
