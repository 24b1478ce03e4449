"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import ExpTransform
from rushlight.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of a normal variable of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ("base_dist",)
    base_dist: Normal
    loc: Tensor = forwarded("base_dist.loc", "The mean of the logarithm.  (*batch)")
    scale: Tensor = forwarded("base_dist.scale", "The standard deviation of the logarithm.  (*batch)")

    def __init__(self, loc: Any, scale: Tensor | float, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
