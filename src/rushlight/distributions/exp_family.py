"""Exponential families: densities exp(t(x) . theta - F(theta) + k(x)), whose entropy is a derivative of F."""

from __future__ import annotations

from typing import Any

from rushlight.autograd import grad
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import sum_rightmost
from rushlight.engine.modes import enable_grad
from rushlight.tensor import Tensor

__all__ = ["ExponentialFamily", "bregman"]


class ExponentialFamily(Distribution):
    """A distribution with `_natural_params` theta, `_log_normalizer(*theta)` F and `_mean_carrier_measure` E k(x).

    Subclasses that define the three have their entropy and their divergences by derivatives of F: E t(x) = F'(theta)
    (Nielsen and Nock, Entropies and cross-entropies of exponential families, ICIP 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """theta, a tuple of tensors whose first dimensions are the batch's."""
        self._lacks("_natural_params")
        return ()

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        """F of theta.  -> (*batch)"""
        self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        """The expectation of k.  -> a number or (*batch)"""
        self._lacks("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """F(theta) - theta . F'(theta) - E k(x).  Raises NotImplementedError where one of the three is missing."""
        carrier = self._mean_carrier_measure
        normalizer, means, theta, tracked = _moments(self)
        result = normalizer - carrier
        for t, mean in zip(theta, means):
            result = result - _over_event(t * mean, normalizer)
        return result if tracked else result.detach()


def _over_event(term: Tensor, normalizer: Tensor) -> Tensor:
    """A sum over the dimensions that F summed over."""
    return sum_rightmost(term, max(term.dim() - normalizer.dim(), 0))


def _moments(p: ExponentialFamily) -> tuple[Any, Any, list[Any], bool]:
    """F, its derivatives (the expectations of t(x)), theta, and whether p's parameters carry gradients."""
    with enable_grad():
        given = p._natural_params
        theta = [t if t.requires_grad else t.detach().requires_grad_() for t in given]
        normalizer = p._log_normalizer(*theta)
        means = grad(normalizer.sum(), theta, create_graph=True)
    return normalizer, means, theta, any(t.requires_grad for t in given)


def bregman(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """KL(p || q) of one family: F(theta_q) - F(theta_p) - (theta_q - theta_p) . F'(theta_p).  -> (*batch)

    Raises NotImplementedError for two families, whose divergence has no common form.
    """
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using "
                                  "Bregman divergences")  # fmt: skip
    normalizer, means, theta, tracked = _moments(p)
    other = q._natural_params
    result = q._log_normalizer(*other) - normalizer
    for mine, its, mean in zip(theta, other, means):
        result = result - _over_event((its - mine) * mean, result)
    return result if tracked or any(t.requires_grad for t in other) else result.detach()
