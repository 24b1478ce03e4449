"""The categorical distribution over one-hot vectors, and its straight-through estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.size import Size
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.categorical import Categorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import functional

if TYPE_CHECKING:
    from rushlight.tensor import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors whose place of the 1 is categorical.  probs, logits: (*batch, K); samples: (*sample, *batch, K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities that sum to 1.  (*batch, K)"""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms.  (*batch, K)"""
        return self._categorical.logits

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> Size:
        """(*batch, K)"""
        return self._categorical.param_shape

    def _one_hot(self, index: Tensor) -> Tensor:
        return functional.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = named.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities (Bengio et al., arXiv:1308.3432): biased, but simple."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
