"""Absolute values of variables that are symmetric around 0."""

from __future__ import annotations

import math
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AbsTransform
from rushlight.tensor import Tensor

__all__ = ["Half"]


class Half(TransformedDistribution):
    """The absolute value of a variable whose density is symmetric around 0: twice that density over 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any
    scale: Tensor = forwarded("base_dist.scale", "That of the whole variable.  (*batch)")

    def __init__(self, whole: Any, validate_args: bool | None = None):
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return named.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return (self.base_dist.log_prob(value) + math.log(2)).masked_fill(value < 0, -math.inf)

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor | complex) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
