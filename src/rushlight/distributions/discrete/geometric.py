"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.distribution import holds
from rushlight.distributions.utils import broadcast_all, functional, special, tiny_of
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__ = ["Geometric"]


class Geometric(ByProbs):
    """How many trials fail before the first success, whose probability is `probs`, or sigmoid(`logits`): 0, 1, 2, ..."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Tensor | None = None, validate_args: bool | None = None):
        super().__init__(self._take(probs, logits).size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not holds(constraints.positive, self.probs):
            raise ValueError(f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution "
                             f"{self!r} to be positive but found invalid values:\n{self.probs}")  # fmt: skip

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return named.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The integer part of an exponential variable, by inversion (Devroye 1986, chapter X.2)."""
        with no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            u = named.rand_like(probs).clamp(min=tiny_of(probs))
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        return special.xlog1py(value, -probs) + probs.log()

    def entropy(self) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
