"""The closed forms of Kullback-Leibler divergences, each the expectation under p of log p - log q."""

from __future__ import annotations

import math

from rushlight.dispatch.named import linalg, named
from rushlight.distributions.continuous.beta import Beta
from rushlight.distributions.continuous.cauchy import Cauchy
from rushlight.distributions.continuous.exponential import Exponential
from rushlight.distributions.continuous.gamma import Gamma
from rushlight.distributions.continuous.gumbel import Gumbel
from rushlight.distributions.continuous.half_normal import HalfNormal
from rushlight.distributions.continuous.laplace import Laplace
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.continuous.uniform import Uniform
from rushlight.distributions.discrete.bernoulli import Bernoulli
from rushlight.distributions.discrete.binomial import Binomial
from rushlight.distributions.discrete.categorical import Categorical
from rushlight.distributions.discrete.geometric import Geometric
from rushlight.distributions.discrete.one_hot_categorical import OneHotCategorical
from rushlight.distributions.discrete.poisson import Poisson
from rushlight.distributions.independent import Independent
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.utils import euler_constant, functional, sum_rightmost
from rushlight.distributions.vectors.dirichlet import Dirichlet
from rushlight.distributions.vectors.multivariate_normal import MultivariateNormal, half_log_det, squared_mahalanobis
from rushlight.tensor import Tensor


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    """(r - 1 - log r) / 2 + (mu_p - mu_q)^2 / (2 sigma_q^2) for the ratio r of variances."""
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    """(tr(Sq^-1 Sp) + d^T Sq^-1 d - n + log det Sq - log det Sp) / 2, the trace as |Lq^-1 Lp|^2."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL of multivariate normals of different event shapes: {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    lp, lq = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = linalg.solve_triangular(lq, lp, upper=False).square().sum((-2, -1))
    distance = squared_mahalanobis(lq, q.loc - p.loc)
    return 0.5 * (trace + distance - p.event_shape[0]) + half_log_det(lq) - half_log_det(lp)


def _weighted(probs: Tensor, log_ratio: Tensor, other: Tensor) -> Tensor:
    """probs * log_ratio: 0 where probs is 0, infinite where only `other` is."""
    term = probs * log_ratio
    return term.masked_fill((other == 0).expand(term.shape), math.inf).masked_fill((probs == 0).expand(term.shape), 0.0)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return _weighted(p.probs, p.logits - q.logits, q.probs).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """p (log p - log q) + (1 - p) (log(1 - p) - log(1 - q)), by logits."""
    success = functional.logsigmoid(p.logits) - functional.logsigmoid(q.logits)
    failure = functional.logsigmoid(-p.logits) - functional.logsigmoid(-q.logits)
    return _weighted(p.probs, success, q.probs) + _weighted(1 - p.probs, failure, 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """Of equal counts n times that of single trials; infinite where p may give more than q."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.total_count * _bernoulli(p, q)
    return each.masked_fill((p.total_count > q.total_count).expand(each.shape), math.inf)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return named.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    """Summed over the dimensions that are taken together, which have to be as many."""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents of different reinterpreted_batch_ndims is not implemented")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """Bijective maps do not change it, if they are the same."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions of different transforms or event shapes is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    """Infinite unless q's interval holds p's."""
    ratio = ((q.high - q.low) / (p.high - p.low)).log()
    return ratio.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    """log(bq / bp) + |d| / bq + bp / bq exp(-|d| / bp) - 1 for the distance d of the centres."""
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    """E z + E exp(-z) + log bq - H(p) for z = (x - mq) / bq, which is Gumbel distributed too."""
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return shift + euler_constant * ratio + ((1 + ratio).lgamma() - shift).exp() - ratio.log() - (1 + euler_constant)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """log(((sp + sq)^2 + d^2) / (4 sp sq)) (Chyzak and Nielsen, arXiv:1905.10965)."""
    total = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return total.log() - (4 * p.scale * q.scale).log()


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    spread = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return spread + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)
