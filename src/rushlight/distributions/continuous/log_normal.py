"""The log-normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.distributions import constraints
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import ExpTransform

if TYPE_CHECKING:
    from typing import Self

    from rushlight.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of a normal variable of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Any, scale: Tensor | float, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm.  (*batch)"""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm.  (*batch)"""
        return self.base_dist.scale

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
