"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _Interval
    from rushlight.tensor import Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What lies beyond `loc`: P(X > x) = (1 + c z)^(-1 / c) for z = (x - loc) / scale and the `concentration` c.

    For c = 0 it is exponential, for c < 0 it ends at loc - scale / c. The parameters broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _batched = ("loc", "scale", "concentration")
    mode: Tensor = forwarded("loc")

    def __init__(self, loc: Any, scale: Tensor, concentration: Tensor, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> _Interval:
        """From loc on, to loc - scale / c where c is negative."""
        bounded = self.concentration < 0
        end = self.loc - self.scale / self.concentration.masked_fill(~bounded, -1.0)
        return constraints.interval(self.loc, end.masked_fill(~bounded, math.inf))

    def _by_tail(self, x: Tensor, bent: Callable[[Any, Any], Any], straight: Tensor) -> Tensor:
        """bent(c, x) where c is not 0, `straight` where it is."""
        c, x, straight = broadcast_all(self.concentration, x, straight)
        flat = named.isclose(c, named.zeros_like(c))
        return named.where(flat, straight, bent(c.masked_fill(flat, 1.0), x))

    def log_survival_function(self, value: Tensor | complex) -> Tensor:
        """log P(X > value).  (*sample, *batch) -> (*sample, *batch)"""
        z = (value - self.loc) / self.scale
        return self._by_tail(z, lambda c, z: -(c * z).log1p() / c, -z)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return self._by_tail(z, lambda c, z: -(1 / c + 1) * (c * z).log1p(), -z) - self.scale.log()

    def cdf(self, value: Any) -> Tensor:
        self._check(value)
        return -self.log_survival_function(value).expm1()

    def log_cdf(self, value: Tensor | complex) -> Tensor:
        """log P(X <= value).  (*sample, *batch) -> (*sample, *batch)"""
        return self.cdf(value).log()

    def icdf(self, value: Any) -> Tensor:
        below = (-value).log1p()
        return self.loc + self.scale * self._by_tail(below, lambda c, s: (-c * s).expm1() / c, -below)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = named.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    @property
    def mean(self) -> Tensor:
        """NaN for concentrations of 1 and more."""
        c = self.concentration.masked_fill(self.concentration >= 1, math.nan)
        return self.loc + self.scale / (1 - c)

    @property
    def variance(self) -> Tensor:
        """NaN for concentrations of 1/2 and more."""
        c = self.concentration.masked_fill(self.concentration >= 0.5, math.nan)
        return self.scale.square() / ((1 - c).square() * (1 - 2 * c))

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
