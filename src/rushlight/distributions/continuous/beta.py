"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all
from rushlight.distributions.vectors.dirichlet import Dirichlet
from rushlight.tensor import Tensor

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """A probability whose density is proportional to p^(concentration1 - 1) (1 - p)^(concentration0 - 1); they broadcast."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _batched = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Tensor | float, validate_args: bool | None = None):
        both = named.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(both.shape[:-1], validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """One more than the power of p.  (*batch)"""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """One more than the power of 1 - p.  (*batch)"""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(named.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _mean_carrier_measure(self) -> Tensor:
        """Minus the expectations of the logarithms of the probabilities, one of each power more than theta has."""
        a, b = self.concentration1, self.concentration0
        return 2 * (a + b).digamma() - a.digamma() - b.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        a, b = natural_params
        return a.lgamma() + b.lgamma() - (a + b).lgamma()
