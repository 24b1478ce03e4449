"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.utils import functional
from rushlight.engine.modes import no_grad

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _IntegerInterval
    from rushlight.tensor import Tensor

__all__ = ["Binomial"]


class Binomial(ByProbs):
    """How many of `total_count` trials succeed, each with the probability `probs`, or sigmoid(`logits`); they broadcast."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}  # fmt: skip
    has_enumerate_support = True
    _batched = ("total_count", "probs", "logits")

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_with_count(total_count, probs, logits)
        super().__init__(self.total_count.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> _IntegerInterval:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return named.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Tensor:
        """log of n! / (k! (n - k)!) p^k (1 - p)^(n - k), by logits: log (1 - p) is log sigmoid(-logit)."""
        self._check(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits + n * functional.logsigmoid(-self.logits)

    def entropy(self) -> Tensor:
        values = self._values("entropy", expand=False)
        log_prob = self.log_prob(values)
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values("enumerate_support", expand)

    def _values(self, caller: str, expand: bool) -> Tensor:
        """0, ..., total_count, which has to be the same everywhere."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{caller}`.")
        return self._along_batch(named.arange(1 + total, dtype=self._param.dtype, device=self._param.device), expand)
