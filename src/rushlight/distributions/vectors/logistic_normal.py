"""The logistic-normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.distributions import constraints
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.independent import Independent
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import StickBreakingTransform

if TYPE_CHECKING:
    from typing import Self

    from rushlight.tensor import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities of K categories that stick-breaking makes of K - 1 normal variables.

    loc, scale: (*batch, K - 1), of the normal variables; numbers are one of them. Samples: (*sample, *batch, K).
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(self, loc: Any, scale: Tensor, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables.  (*batch, K - 1)"""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """Their standard deviations.  (*batch, K - 1)"""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]
