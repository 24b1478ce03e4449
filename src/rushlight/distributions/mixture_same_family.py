"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.categorical import Categorical
from rushlight.distributions.distribution import Distribution
from rushlight.engine.modes import no_grad

if TYPE_CHECKING:
    from rushlight.distributions.constraints import MixtureSameFamilyConstraint
    from rushlight.tensor import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of K distributions, chosen by a categorical one.

    mixture_distribution: a Categorical of K, whose batch broadcasts to (*batch); component_distribution: a batch of
    (*batch, K). Raises ValueError for anything else.

    >>> import rushlight as torch
    >>> from rushlight.distributions import Categorical, MixtureSameFamily, Normal
    >>> m = MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-1.0, 1.0]), 0.5))
    >>> m.mean, m.variance, m.cdf(torch.tensor(0.0))
    (tensor(0.), tensor(1.2500), tensor(0.5000))
    """

    arg_constraints: Any = {}
    mixture_distribution: Categorical = forwarded("_mixture_distribution", "The distribution of the choice.")
    component_distribution: Distribution = forwarded("_component_distribution", "The distributions to choose from.")

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None):  # fmt: skip
        _check_parts(mixture_distribution, component_distribution)
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        batch, event = component_distribution.batch_shape[:-1], component_distribution.event_shape
        self._num_component, self._event_ndims = component_distribution.batch_shape[-1], len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Self | None = None) -> MixtureSameFamily:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(Size((*batch_shape, self._num_component)))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return self._finished(new, batch_shape)

    @constraints.dependent_property
    def support(self) -> MixtureSameFamilyConstraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, x: Any) -> Tensor:
        """A dimension for the components, before those of the event."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Dimensions for the event behind those of the choice.  (*batch, K) -> (*batch, K, *1)"""
        return x.reshape(*x.shape, *[1] * self._event_ndims)

    def _average(self, values: Tensor) -> Tensor:
        """The expectation over components.  (*batch, K, *event) -> (*batch, *event)"""
        weights = self._pad_mixture_dimensions(self._mixture_distribution.probs)
        return (weights * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The law of total variance."""
        away = self._component_distribution.mean - self._pad(self.mean)
        return self._average(self._component_distribution.variance) + self._average(away.square())

    def cdf(self, value: Tensor | complex) -> Tensor:
        below = self._component_distribution.cdf(self._pad(value))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        each = self._component_distribution.log_prob(self._pad(value))
        return (each + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            chosen = chosen.reshape(*chosen.shape, 1, *[1] * self._event_ndims)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.expand(*chosen.shape[: dim + 1], *self._event_shape)
            return named.gather(drawn, dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"


def _check_parts(mixture: object, component: object) -> None:
    """Raise ValueError where they make no mixture."""
    if not isinstance(mixture, Categorical):
        raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
    if not isinstance(component, Distribution):
        raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
    if not component.batch_shape:
        raise ValueError("The Component distribution needs a batch dimension for the components")
    for a, b in zip(reversed(mixture.batch_shape), reversed(component.batch_shape[:-1])):
        if a != 1 and b != 1 and a != b:
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                             f"`component_distribution.batch_shape` ({component.batch_shape})")  # fmt: skip
    k, given = mixture._num_events, component.batch_shape[-1]
    if k != given:
        raise ValueError(
            f"`mixture_distribution component` ({k}) does not equal `component_distribution.batch_shape[-1]` ({given})"
        )
