"""The inverse gamma distribution."""

from __future__ import annotations

import math

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.continuous.gamma import Gamma
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import PowerTransform
from rushlight.tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / X for a gamma variable X of `concentration` and `rate`, which broadcast."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ("base_dist",)
    base_dist: Gamma
    concentration: Tensor = forwarded("base_dist.concentration", "That of the gamma variable.  (*batch)")
    rate: Tensor = forwarded("base_dist.rate", "That of the gamma variable, and the scale of this one.  (*batch)")

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinite for concentrations up to 1."""
        return (self.rate / (self._over(1) - 1)).masked_fill(self.concentration <= 1, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """Infinite for concentrations up to 2."""
        a = self._over(2)
        return (self.rate.square() / ((a - 1).square() * (a - 2))).masked_fill(self.concentration <= 2, math.inf)

    def _over(self, bound: int) -> Tensor:
        """Concentrations, those up to `bound` as some number over it, whose gradients are finite."""
        return self.concentration.masked_fill(self.concentration <= bound, bound + 1.0)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
