"""Bernoulli variables relaxed to numbers between 0 and 1, so that samples have gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import SigmoidTransform
from rushlight.distributions.utils import broadcast_all, clamp_probs, functional
from rushlight.tensor import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ByProbs):
    """The logit of a RelaxedBernoulli variable: a logistic variable around the logit, over the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _batched = ("probs", "logits")
    _handed_on = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(self._take(probs, logits).size(), validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = clamp_probs(named.rand_like(self._param.expand(self._extended_shape(sample_shape))))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Any) -> Tensor:
        """log t + d - 2 log(1 + exp(d)) for d = logit - t value (Maddison et al., 2017, appendix B)."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        d = logits - value * self.temperature
        (temperature,) = broadcast_all(self.temperature)
        return temperature.log() + functional.logsigmoid(d) + functional.logsigmoid(-d)


class RelaxedBernoulli(TransformedDistribution):
    """The binary Concrete distribution (Maddison et al.; Jang et al., ICLR 2017): close to 0 or 1 at low temperatures.

    temperature: a tensor or number over 0; one of `probs` and `logits`: (*batch).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batched = ("base_dist",)
    base_dist: LogitRelaxedBernoulli
    temperature: Tensor = forwarded("base_dist.temperature", "How far samples are from 0 and 1.")
    logits: Tensor = forwarded("base_dist.logits", "log(p / (1 - p)).  (*batch)")
    probs: Tensor = forwarded("base_dist.probs", "(*batch)")

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
