"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How many events of a mean number `rate` happen: 0, 1, 2, ..., as floating-point numbers."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _batched = ("rate",)
    mean: Tensor = forwarded("rate")
    variance: Tensor = forwarded("rate")

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return named.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return named.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()
