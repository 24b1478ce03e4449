"""Student's t-distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, standard_normal, tiny_of
from rushlight.ops.random.gamma_sample import log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal variable over the root of a chi-squared one by its `df` degrees of freedom, times `scale`, plus `loc`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched = ("df", "loc", "scale")
    mode: Tensor = forwarded("loc")

    def __init__(
        self, df: Any, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0, validate_args: bool | None = None
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = self.df.masked_fill(~finite, 3.0)  # any number over 2, so that gradients stay finite
        variance = self.scale.square() * df / (df - 2)
        return variance.masked_fill(~finite, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        half, normal = 0.5 * self.df, standard_normal(shape, self.df)
        log_gamma = log_standard_gamma(half.expand(shape)).clamp(min=math.log(tiny_of(half)))  # keeps samples finite
        log_ratio = log_gamma - half.log()  # of the chi-squared variable and df
        return self.loc + self.scale * normal * (-0.5 * log_ratio).exp()

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        ratio = (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + ratio

    def entropy(self) -> Tensor:
        upper = 0.5 * (self.df + 1)
        return self._log_normalizer() + upper * (upper.digamma() - (0.5 * self.df).digamma())
