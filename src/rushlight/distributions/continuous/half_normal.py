"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from rushlight.distributions.continuous.half import Half
from rushlight.distributions.continuous.normal import Normal
from rushlight.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal variable around 0, of standard deviation `scale`."""

    _batched = ("base_dist",)

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
