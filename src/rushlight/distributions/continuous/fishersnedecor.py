"""The F-distribution of Fisher and Snedecor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, tiny_of
from rushlight.ops.random.gamma_sample import log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """(X1 / df1) / (X2 / df2) for chi-squared X1 and X2 of `df1` and `df2` degrees of freedom, which broadcast."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ("df1", "df2")

    def __init__(self, df1: Any, df2: Tensor, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """NaN for df2 up to 2, where it is infinite or undefined."""
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """NaN for df1 up to 2, where the density grows towards 0."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        """NaN for df2 up to 4."""
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.square() * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The ratio of gamma variables, by their logarithms."""
        shape = self._extended_shape(sample_shape)
        halves = [(0.5 * df).expand(shape) for df in (self.df1, self.df2)]
        first, second = (log_standard_gamma(half) - half.log() for half in halves)
        return (first - second).exp().clamp(min=tiny_of(first))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - beta
