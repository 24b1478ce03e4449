"""What all losses share."""

from __future__ import annotations

from typing import Any

from rushlight.nn import _reduction
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor


class _Loss(Module):
    """A loss with a `reduction`: "mean", "sum" or "none"."""

    reduction: str

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        legacy = size_average is not None or reduce is not None
        self.reduction = _reduction.legacy_get_string(size_average, reduce) if legacy else reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class or element, kept as a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
