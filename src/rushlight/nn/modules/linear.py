"""Identity, Linear and Bilinear."""

from __future__ import annotations

import math
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedParameter
from rushlight.tensor import Tensor

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; accepts and ignores all arguments."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """input -> input."""
        return input


class Linear(Module):
    """`input @ weight.T + bias`.

    weight: (out_features, in_features), bias: (out_features), both uniform in +-1 / sqrt(in_features) at first.

    >>> import rushlight as torch
    >>> torch.nn.Linear(3, 2)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(ops.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ops.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """input: (*, in_features) -> (*, out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of MultiheadAttention: a Linear under a name of its own."""


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for every output k.

    weight: (out_features, in1_features, in2_features), bias: (out_features), uniform in +-1 / sqrt(in1_features).
    """

    weight: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(ops.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ops.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """input1: (*, in1_features), input2: (*, in2_features) -> (*, out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose `in_features` is that of its first input; it becomes a Linear then."""

    cls_to_become = Linear
    weight: UninitializedParameter

    def __init__(
        self, out_features: int, bias: bool = True, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new weights, once they have a shape."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `in_features` from the input and make the weights."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        self.in_features = self.weight.shape[-1]  # weights may have been loaded before the first input
