"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all, special, tiny_of
from rushlight.ops.random.gamma_sample import log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and inverse scale `rate`, which broadcast.

    Samples are differentiable by both, the shape by implicit reparameterisation (Figurnov et al., 2018), once. `cdf`
    needs SciPy, and is differentiable by its argument and the rate.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Tensor | float, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shapes = self.concentration.expand(self._extended_shape(sample_shape))
        return (log_standard_gamma(shapes) - self.rate.log()).exp().clamp(min=tiny_of(shapes))

    def log_prob(self, value: Any) -> Tensor:
        if isinstance(value, (int, float)):
            value = named.tensor(value, dtype=self.rate.dtype)
        self._check(value)
        a, rate = self.concentration, self.rate
        return named.xlogy(a, rate) + named.xlogy(a - 1, value) - rate * value - a.lgamma()

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        return special.gammainc(*broadcast_all(self.concentration, self.rate * value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        power, rate = natural_params
        return (power + 1).lgamma() - (power + 1) * (-rate).log()
