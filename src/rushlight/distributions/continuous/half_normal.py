"""The half-normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.distributions.continuous.half import Half
from rushlight.distributions.continuous.normal import Normal

if TYPE_CHECKING:
    from typing import Self

    from rushlight.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal variable around 0, of standard deviation `scale`."""

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
