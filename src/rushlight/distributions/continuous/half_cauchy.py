"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.dispatch.named import named
from rushlight.distributions.continuous.cauchy import Cauchy
from rushlight.distributions.continuous.half import Half

if TYPE_CHECKING:
    from typing import Self

    from rushlight.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy variable around 0, of half width `scale`."""

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Tensor:
        return named.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
