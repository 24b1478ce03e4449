"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.binomial import Binomial
from rushlight.distributions.discrete.categorical import ByCategorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["Multinomial"]


class Multinomial(ByCategorical):
    """How often each of K categories comes up in `total_count` draws.  probs, logits: (*batch, K) -> (*sample, *batch, K)

    Raises NotImplementedError for a `total_count` that is no int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = ("_categorical",)
    _handed_on = ("total_count",)

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: inhomogeneous total_count is not supported: expected one int for the whole batch, got {total_count!r}"
            )
        if total_count < 0 and (Distribution._validate_args if validate_args is None else validate_args):
            raise ValueError(
                f"Multinomial: Expected parameter total_count to be a nonnegative integer, got {total_count}"
            )
        self.total_count = total_count
        super().__init__(*self._take(probs, logits), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add_(-1, drawn, named.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0.0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n H(p) - log n! + the sum over categories of E log k!, whose k are binomial."""
        n = self.total_count
        marginal = Binomial(n, probs=self.probs, validate_args=False)
        counts = marginal.enumerate_support(expand=False)[1:]
        ways = (marginal.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - named.tensor(n + 1.0, dtype=self.probs.dtype).lgamma() + ways
