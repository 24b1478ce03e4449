"""The Weibull distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.continuous.exponential import Exponential
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.utils import broadcast_all, euler_constant
from rushlight.tensor import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale E^(1 / concentration) for a standard exponential E; the parameters broadcast."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Tensor, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(named.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, _maps(self.scale, self.concentration), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        super().expand(batch_shape, new)
        new.transforms = _maps(new.scale, new.concentration)
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + 1 / self.concentration).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        """0 for concentrations up to 1."""
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return self.scale.square() * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


def _maps(scale: Tensor, concentration: Tensor) -> list[Any]:
    """From a standard exponential variable."""
    return [PowerTransform(concentration.reciprocal()), AffineTransform(0, scale)]
