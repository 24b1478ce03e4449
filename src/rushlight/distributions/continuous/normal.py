"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.distributions.continuous.loc_scale import LocScale
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import standard_normal
from rushlight.tensor import Tensor

__all__ = ["Normal"]


class Normal(LocScale, ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`, which broadcast.

    >>> import rushlight as torch
    >>> torch.distributions.Normal(0.0, 2.0).log_prob(torch.tensor(0.0))
    tensor(-1.6121)
    """

    _mean_carrier_measure = 0
    _batched = ("loc", "scale")
    stddev: Tensor = forwarded("scale")

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * standard_normal(self._extended_shape(sample_shape), self.loc)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return -0.5 * ((value - self.loc) / self.scale).square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: object) -> Tensor:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) / self.scale * math.sqrt(0.5)).erf())

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
