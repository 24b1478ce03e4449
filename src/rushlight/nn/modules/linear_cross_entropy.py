"""LinearCrossEntropyLoss: a classifying layer and its cross-entropy in one."""

from __future__ import annotations

import math
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.nn import functional as F
from rushlight.nn.base.loss_base import _WeightedLoss
from rushlight.nn.modules.linear import Linear
from rushlight.tensor import Tensor


class LinearCrossEntropyOptions:
    """How the loss is computed: in chunks of the batch, and in which dtype it is accumulated."""

    __slots__ = ("acc_dtype", "acc_policy", "allow_retain_graph", "batch_chunk_size", "chunking_method")

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: dtype | None = None,
    ) -> None:
        self.allow_retain_graph, self.batch_chunk_size = allow_retain_graph, batch_chunk_size
        self.chunking_method, self.acc_policy, self.acc_dtype = chunking_method, acc_policy, acc_dtype

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearCrossEntropyOptions) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"LinearCrossEntropyOptions({shown})"


_FIELDS = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross-entropy of `linear(input)`, where `linear` is a Linear of this module.

    Args:
        in_features: size of the input's features.
        num_classes: number of classes C.
        out_features: further dimensions (d1, ..., dK) of the logits.
        others: as CrossEntropyLoss; `options` say how to compute it.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        rows = num_classes * math.prod(out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(N, in_features), classes (N, d1, ..., dK) or probabilities (N, C, d1, ..., dK) -> () or (N, d1, ..., dK)."""
        weight: Any = self.linear.weight
        bias: Any = self.linear.bias
        shape = (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            weight.view(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.view(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )
