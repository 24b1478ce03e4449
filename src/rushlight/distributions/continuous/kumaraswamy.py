"""The distribution of Kumaraswamy (A generalized probability density function for double-bounded random processes,
Journal of Hydrology 46, 1980)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.continuous.uniform import Uniform
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.utils import broadcast_all, eps_of, euler_constant, special, tiny_of
from rushlight.tensor import Tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Probabilities with P(X > x) = (1 - x^a)^b for a = `concentration1` and b = `concentration0`, which broadcast.

    It is like a beta distribution, with a closed form for samples.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Tensor, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(_uniform(self, validate_args), _maps(self), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        super().expand(batch_shape, new)
        new.transforms = _maps(new)
        return new

    def _moment(self, n: int) -> Tensor:
        """E X^n = b B(1 + n / a, b)."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return (b.log() + a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))^(1 / a); NaN where a or b is below 1, or both are 1: no maximum within the interval."""
        a, b = self.concentration1, self.concentration0
        none = (a < 1) | (b < 1) | ((a == 1) & (b == 1))
        return ((a - 1) / (a * b - 1)).pow(1 / a).masked_fill(none, math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def log_prob(self, value: Any) -> Tensor:
        """log(a b) + (a - 1) log x + (b - 1) log(1 - x^a)."""
        self._check(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + named.xlogy(a - 1, value) + special.xlog1py(b - 1, -value.pow(a))

    def cdf(self, value: Any) -> Tensor:
        self._check(value)
        return -(self.concentration0 * (-value.pow(self.concentration1)).log1p()).expm1()

    def entropy(self) -> Tensor:
        """(1 - 1 / b) + (1 - 1 / a) H_b - log(a b), with the harmonic number H_b = digamma(b + 1) + Euler's constant."""
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


def _uniform(d: Kumaraswamy, validate_args: bool | None) -> Uniform:
    """Numbers in (0, 1) that keep samples apart from both ends."""
    zero = named.zeros_like(d.concentration1)
    return Uniform(zero + tiny_of(zero), 1 - eps_of(zero) + zero, validate_args=validate_args)


def _maps(d: Kumaraswamy) -> list[Any]:
    """u to (1 - u^(1 / b))^(1 / a)."""
    return [PowerTransform(d.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
            PowerTransform(d.concentration1.reciprocal())]  # fmt: skip
