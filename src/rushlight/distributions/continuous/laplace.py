"""The Laplace distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.dtypes import finfo
from rushlight.distributions.continuous.loc_scale import LocScale
from rushlight.tensor import Tensor

__all__ = ["Laplace"]


class Laplace(LocScale):
    """The two-sided exponential distribution around `loc`, of width `scale`, which broadcast."""

    _batched = ("loc", "scale")

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()  # the distribution function, inverted

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
