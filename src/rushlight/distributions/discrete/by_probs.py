"""What distributions share that are given by a probability of success or by its logit, one number each."""

from __future__ import annotations

from numbers import Number
from typing import Any

from rushlight.basics.size import Size
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from rushlight.tensor import Tensor

__all__ = ["ByOneOf", "ByProbs", "one_of"]


def one_of(probs: Tensor | None, logits: Any) -> bool:
    """Whether it is `probs` that is given.  Raises ValueError unless exactly one is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


class ByOneOf(Distribution):
    """A distribution of one of `probs` and `logits`; the other is computed when it is asked for."""

    logits: Any

    @property
    def _param(self) -> Tensor:
        """The one of the two that is there."""
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()


class ByProbs(ByOneOf):
    """One whose `probs` are single numbers, and `logits` those of two outcomes."""

    def _take(self, probs: Any, logits: Any) -> Tensor:
        """Keep the one that is given as a tensor, and return it."""
        name, given = ("probs", probs) if one_of(probs, logits) else ("logits", logits)
        kept: Tensor = broadcast_all(given)[0] if isinstance(given, Number) else given
        self.__dict__[name] = kept
        return kept

    def _take_with_count(self, total_count: Any, probs: Any, logits: Any) -> None:
        """Keep the one that is given and a number of trials, broadcast together, in one dtype."""
        name, given = ("probs", probs) if one_of(probs, logits) else ("logits", logits)
        count, self.__dict__[name] = broadcast_all(total_count, given)
        self.total_count = count.to(self.__dict__[name].dtype)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities of success.  (*batch)"""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p)).  (*batch)"""
        return probs_to_logits(self.probs, is_binary=True)
