"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn.modules.attention import MultiheadAttention
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Overwriting(Module):
    """Activations that can overwrite their input, and have no other options."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _InPlace(_Overwriting):
    """Those that are shown with it, and may have options of their own."""

    def _shown(self, *parts: str) -> str:
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return self._shown()


class Threshold(_InPlace):
    """`x` where it is over `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Both numbers."""
        return self._shown(f"threshold={self.threshold}, value={self.value}")


class ReLU(_InPlace):
    """`max(x, 0)`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.relu(input, inplace=self.inplace)


class RReLU(_InPlace):
    """`x` where positive, else `a * x` with `a` uniform in [lower, upper] in training and their mean otherwise."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds of the slope."""
        return self._shown(f"lower={self.lower}, upper={self.upper}")


class Hardtanh(_InPlace):
    """`x` limited to [min_val, max_val].  Raises ValueError unless `max_val > min_val`."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = _renamed("min_value", "min_val", min_value, min_val)
        self.max_val = _renamed("max_value", "max_val", max_value, max_val)
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"Hardtanh: max_val ({self.max_val}) must be over min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The limits."""
        return self._shown(f"min_val={self.min_val}, max_val={self.max_val}")


def _renamed(old: str, new: str, old_value: Any, new_value: float) -> float:
    """The value of an argument that has a deprecated name too."""
    if old_value is None:
        return new_value
    warn(f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning)
    return old_value


class ReLU6(Hardtanh):
    """`min(max(x, 0), 6)`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return self._shown()


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return ops.sigmoid(input)


class Hardsigmoid(_Overwriting):
    """`min(max(x / 6 + 1 / 2, 0), 1)`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return ops.tanh(input)


class SiLU(_InPlace):
    """`x * sigmoid(x)`, also called swish."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    """`x * tanh(softplus(x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.mish(input, inplace=self.inplace)


class Hardswish(_Overwriting):
    """`x * min(max(x + 3, 0), 6) / 6`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.hardswish(input, self.inplace)


class _Scaled(_InPlace):
    """Those with a factor."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def extra_repr(self) -> str:
        """The factor."""
        return self._shown(f"alpha={self.alpha}")


class ELU(_Scaled):
    """`x` where positive, else `alpha * (exp(x) - 1)`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Scaled):
    """`max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """`scale * (max(x, 0) + min(0, alpha * (exp(x) - 1)))` with the constants of self-normalising networks."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.selu(input, self.inplace)


class GLU(Module):
    """`a * sigmoid(b)` of the two halves along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """(*, 2 n, *) -> (*, n, *)."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class GELU(Module):
    """`x` times the normal distribution function of `x`, exact ("none") or by the tanh approximation ("tanh")."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Which formula."""
        return f"approximate={self.approximate!r}"


class _Shrinking(Module):
    """Those with 0 where the input is small."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """The limit."""
        return str(self.lambd)


class Hardshrink(_Shrinking):
    """`x` outside [-lambd, lambd], 0 inside."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrinking):
    """`x - lambd` over lambd, `x + lambd` below -lambd, 0 between."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.softshrink(input, self.lambd)


class LeakyReLU(_InPlace):
    """`x` where positive, else `negative_slope * x`."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return self._shown(f"negative_slope={self.negative_slope}")


class LogSigmoid(Module):
    """`log(1 / (1 + exp(-x)))`, without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.logsigmoid(input)


class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta`; `x` where `beta * x > threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Both numbers."""
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """`x` where positive, else `weight * x`; weight: (num_parameters), one for all channels or one for each."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(ops.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to `init`."""
        from rushlight.nn import init

        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """(*) or (N, C, *) -> the same."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes."""
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """`x / (1 + |x|)`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.softsign(input)


class Tanhshrink(Module):
    """`x - tanh(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.tanhshrink(input)


class _AlongDim(Module):
    """Softmax and its kin."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """`softmax(-x)` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.softmin(input, self.dim)


class Softmax(_AlongDim):
    """`exp(x) / sum(exp(x))` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels at every place of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) or (C, H, W) -> the same.  Raises ValueError for other shapes."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class LogSoftmax(_AlongDim):
    """`log(softmax(x))` along `dim`, without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.log_softmax(input, self.dim)
