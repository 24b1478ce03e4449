"""One-hot vectors relaxed to the simplex, so that samples have gradients: the Gumbel-softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.categorical import ByCategorical
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import ExpTransform
from rushlight.distributions.utils import broadcast_all, clamp_probs
from rushlight.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(ByCategorical):
    """The logarithm of a RelaxedOneHotCategorical variable."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # its elements' exponentials sum to 1
    has_rsample = True
    _batched = ("_categorical",)
    _handed_on = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(*self._take(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The log-softmax of (logits + Gumbel noise) / temperature."""
        u = clamp_probs(named.rand_like(self._categorical._param.expand(self._extended_shape(sample_shape))))
        return ((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Any) -> Tensor:
        """log (K - 1)! + (K - 1) log t + the sum of the log-softmax of logits - t value (Maddison et al., 2017, 22)."""
        self._check(value)
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        (temperature,) = broadcast_all(self.temperature)
        score = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        return score + math.lgamma(k) + (k - 1) * temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """The Concrete distribution (Maddison et al.; Jang et al., ICLR 2017): close to one-hot vectors at low temperatures.

    temperature: a tensor or number over 0; one of `probs` and `logits`: (*batch, K).
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _batched = ("base_dist",)
    base_dist: ExpRelaxedCategorical
    temperature: Tensor = forwarded("base_dist.temperature", "How far samples are from one-hot vectors.")
    logits: Tensor = forwarded("base_dist.logits", "Logarithms of the probabilities.  (*batch, K)")
    probs: Tensor = forwarded("base_dist.probs", "Probabilities that sum to 1.  (*batch, K)")

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
