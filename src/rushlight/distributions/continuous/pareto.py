"""The Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.continuous.exponential import Exponential
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, ExpTransform
from rushlight.distributions.utils import broadcast_all

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _GreaterThanEq
    from rushlight.tensor import Tensor

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """From `scale` on, with a tail that falls as x^-(alpha + 1); the parameters broadcast."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    mode: Tensor = forwarded("scale")

    def __init__(self, scale: Any, alpha: complex, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        super().expand(batch_shape, new)
        new.transforms = [ExpTransform(), AffineTransform(0, new.scale)]
        return new

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> _GreaterThanEq:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """Infinite for alpha up to 1."""
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def variance(self) -> Tensor:
        """Infinite for alpha up to 2."""
        alpha = self.alpha.clamp(min=2)
        finite = self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))
        return finite.masked_fill(alpha == 2, math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
