"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.utils import functional
from rushlight.engine.modes import no_grad
from rushlight.ops.random.gamma_sample import log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ByProbs):
    """How many trials succeed, with probability `probs` in [0, 1) each, before `total_count` fail; they broadcast."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}  # fmt: skip
    support = constraints.nonnegative_integer
    _batched = ("total_count", "probs", "logits")

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_with_count(total_count, probs, logits)
        super().__init__(self.total_count.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """A Poisson variable whose rate is gamma distributed."""
        with no_grad():
            shapes = self.total_count.expand(self._extended_shape(sample_shape))
            return named.poisson((log_standard_gamma(shapes) + self.logits).exp())

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        n = self.total_count
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        ways = ways.masked_fill(n + value == 0, 0.0)
        return ways + n * functional.logsigmoid(-self.logits) + value * functional.logsigmoid(self.logits)
