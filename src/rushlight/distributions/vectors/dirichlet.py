"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import eps_of, functional, tiny_of
from rushlight.ops.random.gamma_sample import _dirichlet_grad, log_standard_gamma
from rushlight.tensor import Tensor

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient by the concentration of samples that each move along their own quantile.  (*, K) of each -> (*, K)"""
    total = concentration.sum(-1, True).expand_as(concentration)
    slope: Tensor = _dirichlet_grad(x, concentration, total)
    return slope * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Probabilities of K categories.  concentration: (*batch, K), positive; samples: (*sample, *batch, K).

    A sample is the softmax of logarithms of gamma variables, and differentiable through them. It is never 0 or 1: what
    would be rounded to these becomes the next number, whose density is finite.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: `concentration` parameter must be at least one-dimensional, got a 0-d tensor")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Dirichlet, _instance)
        new.concentration = self.concentration.expand((*batch_shape, *self._event_shape))
        return self._finished(new, batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below 1, the density has no maximum: then the vertex of the largest."""
        above = (self.concentration - 1).clamp(min=0)
        vertex = functional.one_hot(self.concentration.argmax(-1), self._event_shape[0]).to(above.dtype)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        return named.where(corner, vertex, above / above.sum(-1, keepdim=True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shares = log_standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))).softmax(-1)
        return shares.clamp(min=tiny_of(shares), max=1 - eps_of(shares) / 2)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        a = self.concentration
        return named.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self._event_shape[0]
        total = a.sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    @property
    def _mean_carrier_measure(self) -> Tensor:
        """Minus the expectations of the logarithms of the probabilities, one of each power more than theta has."""
        a = self.concentration
        return a.shape[-1] * a.sum(-1).digamma() - a.digamma().sum(-1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (a,) = natural_params
        return a.lgamma().sum(-1) - a.sum(-1).lgamma()
