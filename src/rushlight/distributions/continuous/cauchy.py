"""The Cauchy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions.continuous.loc_scale import LocScale
from rushlight.tensor import Tensor

__all__ = ["Cauchy"]


class Cauchy(LocScale):
    """The ratio of two normal variables, around `loc`, of half width `scale`, which broadcast.  It has no mean."""

    _batched = ("loc", "scale")

    @property
    def mean(self) -> Tensor:
        return named.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return named.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
