"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.independent import Independent
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import StickBreakingTransform
from rushlight.tensor import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities of K categories that stick-breaking makes of K - 1 normal variables.

    loc, scale: (*batch, K - 1), of the normal variables; numbers are one of them. Samples: (*sample, *batch, K).
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _batched = ("base_dist",)
    base_dist: Independent
    loc: Tensor = forwarded("base_dist.base_dist.loc", "The means of the normal variables.  (*batch, K - 1)")
    scale: Tensor = forwarded("base_dist.base_dist.scale", "Their standard deviations.  (*batch, K - 1)")

    def __init__(self, loc: Any, scale: Tensor, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)
