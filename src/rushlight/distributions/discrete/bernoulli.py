"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all, functional
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(ByProbs, ExponentialFamily):
    """1 with the probability `probs`, or sigmoid(`logits`), else 0, as floating-point numbers."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batched = ("probs", "logits")
    mean: Tensor = forwarded("probs")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._take(probs, logits).size(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return likelier.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return named.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -functional.binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return functional.softplus(natural_params[0])

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._along_batch(named.arange(2, dtype=self._param.dtype, device=self._param.device), expand)
