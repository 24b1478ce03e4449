"""The categorical distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.dtypes import finfo
from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByOneOf, one_of
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import lazy_property, logits_to_probs, probs_to_logits
from rushlight.engine.modes import no_grad

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _IntegerInterval
    from rushlight.tensor import Tensor

__all__ = ["ByCategorical", "Categorical"]


class Categorical(ByOneOf):
    """An index from 0 to K - 1, with the probabilities in the last dimension of `probs` or by those of `logits`.

    Both are normalised: `probs` to a sum of 1, `logits` so that they are the logarithms of probabilities.
    probs, logits: (*batch, K); samples: (*sample, *batch), int64.

    >>> import rushlight as torch
    >>> d = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(torch.tensor(1))
    (tensor([0.2500, 0.7500]), tensor(-0.2877))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    variance: Tensor = forwarded("mean")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        name = "probs" if one_of(probs, logits) else "logits"
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.size()[:-1], validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities that sum to 1.  (*batch, K)"""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        """Their logarithms.  (*batch, K)"""
        return probs_to_logits(self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> _IntegerInterval:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return named.full_like(self._param[..., 0], float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> Any:
        new = self._get_checked_instance(Categorical, _instance)
        for name in ("probs", "logits"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand((*batch_shape, self._num_events))
        new._num_events = self._num_events
        return self._finished(new, batch_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = Size(sample_shape)
            rows = self.probs.reshape(-1, self._num_events)
            drawn = (
                named.multinomial(rows, shape.numel(), True) if shape.numel() else rows.new_empty((len(rows), 0)).long()
            )
            return drawn.T.reshape(self._extended_shape(shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        index, logits = named.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._along_batch(named.arange(self._num_events, device=self._param.device), expand)


class ByCategorical(Distribution):
    """A distribution of vectors with an element for each of the K values of a `Categorical`, which is in it."""

    _categorical: Categorical
    probs: Tensor = forwarded("_categorical.probs", "Probabilities that sum to 1.  (*batch, K)")
    logits: Tensor = forwarded("_categorical.logits", "Their logarithms.  (*batch, K)")
    param_shape: Size = forwarded("_categorical.param_shape", "(*batch, K)")

    def _take(self, probs: Any, logits: Any) -> tuple[Size, Size]:
        """Keep the categorical distribution; the shapes of the batch and of a draw."""
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        return shape[:-1], shape[-1:]
