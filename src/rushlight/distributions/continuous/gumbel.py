"""The Gumbel distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.dtypes import finfo
from rushlight.distributions.continuous.loc_scale import LocScale
from rushlight.distributions.utils import euler_constant, tiny_of
from rushlight.tensor import Tensor

__all__ = ["Gumbel"]


class Gumbel(LocScale):
    """The limit of maxima of many variables: loc - scale log(E) for a standard exponential E; they broadcast."""

    _batched = ("loc", "scale")

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self.loc.new_empty(self._extended_shape(sample_shape))
        u.uniform_(tiny_of(u), 1 - finfo(u.dtype).eps)
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
