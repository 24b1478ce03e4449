"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions.continuous.cauchy import Cauchy
from rushlight.distributions.continuous.half import Half
from rushlight.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy variable around 0, of half width `scale`."""

    _batched = ("base_dist",)
    variance: Tensor = forwarded("base_dist.variance")

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return named.full_like(self.scale, math.inf)
