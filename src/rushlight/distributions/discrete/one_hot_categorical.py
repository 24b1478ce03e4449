"""The categorical distribution over one-hot vectors, and its straight-through estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics.forwarding import forwarded
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.categorical import ByCategorical
from rushlight.distributions.utils import functional
from rushlight.tensor import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(ByCategorical):
    """One-hot vectors whose place of the 1 is categorical.  probs, logits: (*batch, K); samples: (*sample, *batch, K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)
    _param: Tensor = forwarded("_categorical._param")
    mean: Tensor = forwarded("probs")

    def __init__(self, probs: Any = None, logits: Tensor | None = None, validate_args: bool | None = None):
        super().__init__(*self._take(probs, logits), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return functional.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        return self._along_batch(named.eye(n, dtype=self._param.dtype, device=self._param.device), expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities (Bengio et al., arXiv:1308.3432): biased, but simple."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
