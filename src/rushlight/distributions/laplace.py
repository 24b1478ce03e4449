"""The Laplace distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, eps_of, tiny_of

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The two-sided exponential distribution around `loc`, of width `scale`, which broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(Laplace, batch_shape, _instance, "loc", "scale")

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps_of(self.loc) - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs().clamp(min=tiny_of(u))).log1p()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()
