"""Kullback-Leibler divergences between different families: -H(p) - E log q, by the moments of p that log q asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight.dispatch.named import linalg, named
from rushlight.distributions.continuous.beta import Beta
from rushlight.distributions.continuous.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.continuous.exponential import Exponential
from rushlight.distributions.continuous.gamma import Gamma
from rushlight.distributions.continuous.gumbel import Gumbel
from rushlight.distributions.continuous.laplace import Laplace
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.continuous.pareto import Pareto
from rushlight.distributions.continuous.uniform import Uniform
from rushlight.distributions.discrete.bernoulli import Bernoulli
from rushlight.distributions.discrete.binomial import Binomial
from rushlight.distributions.discrete.poisson import Poisson
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exp_family import ExponentialFamily, bregman
from rushlight.distributions.kl import register_kl
from rushlight.distributions.utils import euler_constant
from rushlight.distributions.vectors.lowrank_multivariate_normal import LowRankMultivariateNormal
from rushlight.distributions.vectors.multivariate_normal import MultivariateNormal, half_log_det, squared_mahalanobis
from rushlight.tensor import Tensor

Moment = Callable[[Any], Any]

register_kl(ExponentialFamily, ExponentialFamily)(bregman)


def _uniform_mean_log(p: Uniform, shift: float = 0.0, sign: int = 1) -> Tensor:
    """E log |shift + sign x| over an interval where that is not negative: (b log b - a log a) / (b - a) - 1."""
    a, b = (shift + sign * end for end in (p.low, p.high))
    return sign * (named.xlogy(b, b) - named.xlogy(a, a)) / (p.high - p.low) - 1


# E log x, and E exp(-t x), of the families of p.
_MEAN_LOG: dict[type, Moment] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -p.rate.log() - euler_constant,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _uniform_mean_log,
}
_MEAN_EXP: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (p.rate / (p.rate + t)).pow(p.concentration),
    Normal: lambda p, t: (t * (t * p.variance / 2 - p.loc)).exp(),
    Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}


def _of(table: dict[type, Any], p: Distribution) -> Any:
    """The entry of the nearest class."""
    return next(table[kind] for kind in type(p).__mro__ if kind in table)


def _cross_exponential(p: Distribution, q: Exponential) -> Tensor:
    """-E log q = rate E x - log rate."""
    return q.rate * p.mean - q.rate.log()


def _cross_gamma(p: Distribution, q: Gamma) -> Tensor:
    """-E log q = log Gamma(a) - a log rate - (a - 1) E log x + rate E x."""
    a, mean_log = q.concentration, _of(_MEAN_LOG, p)(p)
    return a.lgamma() - a * q.rate.log() - (a - 1) * mean_log + q.rate * p.mean


def _cross_normal(p: Distribution, q: Normal) -> Tensor:
    """-E log q = log(2 pi v) / 2 + (Var x + (E x - loc)^2) / 2 v."""
    spread = (p.variance + (p.mean - q.loc).square()) / q.variance
    return 0.5 * (math.log(2 * math.pi) + spread) + q.scale.log()


def _cross_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    """-E log q = log scale + E z + E exp(-z) for z = (x - loc) / scale."""
    shifted = (q.loc / q.scale).exp() * _of(_MEAN_EXP, p)(p, q.scale.reciprocal())
    return q.scale.log() + (p.mean - q.loc) / q.scale + shifted


def _cross_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    """-E log q = F(t) - t E x for the logit t."""
    return q._log_normalizer(q.logits) - q.logits * p.mean


def _cross_uniform(p: Distribution, q: Uniform) -> Tensor:
    return (q.high - q.low).log()


def _outside_unit(p: Uniform, q: Distribution) -> Tensor:
    """Where an interval is not within [0, 1]."""
    return (p.low < 0) | (p.high > 1)


def _beyond(p: Distribution, q: Uniform) -> Tensor:
    """Where q's interval does not hold [0, 1]."""
    return (q.low > 0) | (q.high < 1)


def _below_zero(p: Uniform, q: Distribution) -> Tensor:
    return p.low < 0


def _never(p: Distribution, q: Distribution) -> bool:
    return False


_CROSS: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: _cross_exponential, Gamma: _cross_gamma, Normal: _cross_normal, Gumbel: _cross_gumbel,
    ContinuousBernoulli: _cross_continuous_bernoulli, Uniform: _cross_uniform,
}  # fmt: skip
# (p, q): where the divergence is infinite.
_FINITE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {
    (Beta, ContinuousBernoulli): _never, (Beta, Exponential): _never, (Beta, Gamma): _never, (Beta, Normal): _never,
    (Beta, Uniform): _beyond, (ContinuousBernoulli, Exponential): _never, (ContinuousBernoulli, Normal): _never,
    (ContinuousBernoulli, Uniform): _beyond, (Exponential, Gamma): _never, (Exponential, Gumbel): _never,
    (Exponential, Normal): _never, (Gamma, Exponential): _never, (Gamma, Gumbel): _never, (Gamma, Normal): _never,
    (Gumbel, Normal): _never, (Laplace, Normal): _never, (Normal, Gumbel): _never,
    (Pareto, Exponential): lambda p, q: p.alpha <= 1, (Pareto, Gamma): lambda p, q: p.alpha <= 1,
    (Pareto, Normal): lambda p, q: p.alpha <= 2, (Uniform, ContinuousBernoulli): _outside_unit,
    (Uniform, Exponential): _below_zero, (Uniform, Gamma): _below_zero, (Uniform, Gumbel): _never, (Uniform, Normal): _never,
}  # fmt: skip
# p, and the families that do not reach wherever p does: the divergence is infinite.
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform), Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform), Poisson: (Bernoulli, Binomial),
}  # fmt: skip


def _by_moments(q: type, infinite: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """-H(p) - E log q, infinite where `infinite(p, q)` says so."""

    def divergence(p: Distribution, q_: Distribution) -> Tensor:
        found, outside = _CROSS[q](p, q_) - p.entropy(), infinite(p, q_)
        return found if outside is False else found.masked_fill(outside.expand(found.shape), math.inf)

    return divergence


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """Infinity for each of the batch."""
    shape = named.broadcast_shapes(p.batch_shape, q.batch_shape)
    first = next(v for v in (getattr(p, name) for name in p.arg_constraints) if hasattr(v, "new_full"))
    return first.new_full(shape, math.inf)


for _pair, _where in _FINITE.items():
    register_kl(*_pair)(_by_moments(_pair[1], _where))
for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """-H(p) - probs log rate + rate: the factorials of 0 and 1 are 1."""
    return -p.entropy() - named.xlogy(p.probs, q.rate) + q.rate


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return _cross_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """log(2 b) + E |x - m| / b - H(p), where E |y| = s sqrt(2 / pi) exp(-r^2 / 2) + d erf(r / sqrt 2), r = d / s."""
    distance = p.loc - q.loc
    ratio = distance / p.scale
    away = p.scale * math.sqrt(2 / math.pi) * (-0.5 * ratio.square()).exp() + distance * (ratio * math.sqrt(0.5)).erf()
    return (2 * q.scale).log() + away / q.scale - p.entropy()


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    """Infinite where q begins after p: alpha log(scale_p / scale_q) - log r + r - 1 with r = alpha_q / alpha_p."""
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill((p.scale < q.scale).expand(found.shape), math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    """log B(a, b) - (a - 1) E log x - (b - 1) E log(1 - x) - H(p)."""
    a, b, outside = q.concentration1, q.concentration0, _outside_unit(p, q)
    beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    found = beta - (a - 1) * _uniform_mean_log(p) - (b - 1) * _uniform_mean_log(p, 1.0, -1) - p.entropy()
    return found.masked_fill(outside.expand(found.shape), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """(alpha + 1) E log x - log alpha - alpha log scale - H(p), infinite where q begins after p."""
    found = (q.alpha + 1) * _uniform_mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return found.masked_fill((p.low < q.scale).expand(found.shape), math.inf)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal | MultivariateNormal) -> Tensor:
    """(tr(Sq^-1 Sp) + d^T Sq^-1 d - n + log det Sq - log det Sp) / 2, the trace over factors of Sp.

    Raises ValueError for vectors of different lengths.
    """
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL of normal vectors of different event shapes: {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    trace = sum(_trace(q, factor) for factor in _factors(p))
    shift = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        distance = q.squared_mahalanobis(shift)
    else:
        distance = squared_mahalanobis(q._unbroadcasted_scale_tril, shift)
    return 0.5 * (trace + distance - p.event_shape[0]) + _half_log_det(q) - _half_log_det(p)


def _factors(p: LowRankMultivariateNormal | MultivariateNormal) -> list[Any]:
    """Matrices A whose A A^T add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, named.diag_embed(p._unbroadcasted_cov_diag.sqrt())]


def _trace(q: LowRankMultivariateNormal | MultivariateNormal, a: Tensor) -> Tensor:
    """tr(Sq^-1 A A^T) = |Lq^-1 A|^2, or |dq^-1/2 A|^2 - |Bq A|^2."""
    if isinstance(q, MultivariateNormal):
        return linalg.solve_triangular(q._unbroadcasted_scale_tril, a, upper=False).square().sum((-2, -1))
    scaled = a.square() / q._unbroadcasted_cov_diag.unsqueeze(-1)
    return scaled.sum((-2, -1)) - (q._inner @ a).square().sum((-2, -1))


def _half_log_det(d: LowRankMultivariateNormal | MultivariateNormal) -> Tensor:
    """Half of the logarithm of a covariance's determinant."""
    return half_log_det(d._unbroadcasted_scale_tril) if isinstance(d, MultivariateNormal) else d.half_log_det()
