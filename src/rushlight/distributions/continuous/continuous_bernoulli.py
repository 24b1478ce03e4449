"""The continuous Bernoulli distribution (Loaiza-Ganem and Cunningham, NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.discrete.by_probs import ByProbs
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all, clamp_probs
from rushlight.tensor import Tensor

__all__ = ["ContinuousBernoulli"]

# B_2k / (2k)! for k = 1, 2, ...: the coefficients of x / (exp(x) - 1) - 1 + x / 2.
_SERIES = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
_NEAR = 0.5  # below this logit the series is exact to 2e-16, above it the closed forms lose no more than a digit


def _series(x: Tensor, factor: Callable[[int], float], power: int) -> Tensor:
    """The sum over k of B_2k / (2k)! factor(k) x^(2k - power), by Horner's rule.  (*) -> (*)"""
    square, total = x.square(), named.zeros_like(x)
    for k in reversed(range(1, len(_SERIES) + 1)):
        total = total * square + _SERIES[k - 1] * factor(k)
    return total * x.pow(2 - power)


def _chosen(x: Tensor, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Tensor:
    """`near` around 0 and `far` elsewhere, each of numbers where it and its gradient are finite.  (*) -> (*)"""
    small = x.abs() < _NEAR
    return named.where(small, near(x.masked_fill(~small, 0.0)), far(x.masked_fill(small, 1.0)))


def _log_normalizer(x: Tensor) -> Tensor:
    """log((exp(x) - 1) / x), the logarithm of the integral of exp(x y) over y from 0 to 1.  (*) -> (*)"""
    return _chosen(
        x,
        lambda x: x / 2 + _series(x, lambda k: 1 / (2 * k), 0),
        lambda x: x.clamp(min=0) + ((-(-x.abs()).expm1()) / x.abs()).log(),
    )


class ContinuousBernoulli(ByProbs, ExponentialFamily):
    """Numbers in [0, 1] whose density is proportional to p^x (1 - p)^(1 - x), by `probs` p or `logits`.

    p is not the mean. All is computed by the logit t, in which the density is exp(t x) t / (exp(t) - 1), and near t = 0 by
    the series of Bernoulli's numbers; `lims`, the probabilities between which PyTorch uses a shorter series, is kept and
    has no effect. Raises ValueError unless exactly one of `probs` and `logits` is given, and for probabilities outside of
    [0, 1]; those are kept apart from 0 and 1 by the dtype's eps.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _batched = ("probs", "logits")
    _handed_on = ("_lims",)

    def __init__(self, probs: Any = None, logits: Tensor | None = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None):  # fmt: skip
        kept = self._take(probs, logits)
        if probs is not None:
            if validate_args and not constraints.unit_interval.check(kept).all():
                raise ValueError("The parameter probs has invalid values")
            kept = self.__dict__["probs"] = clamp_probs(kept)
        self._lims = lims
        super().__init__(() if isinstance(probs if logits is None else logits, Number) else kept.size(),
                         validate_args=validate_args)  # fmt: skip

    @property
    def mean(self) -> Tensor:
        """1 / (1 - exp(-t)) - 1 / t."""
        return _chosen(
            self.logits,
            lambda t: 0.5 + _series(t, lambda k: 1.0, 1),
            lambda t: 1 / -(-t).expm1() - 1 / t,
        )

    @property
    def variance(self) -> Tensor:
        """1 / t^2 - 1 / (2 sinh(t / 2))^2, the square as e / (1 - e)^2 for e = exp(-|t|), which does not overflow."""
        return _chosen(
            self.logits,
            lambda t: _series(t, lambda k: 2.0 * k - 1, 2),
            lambda t: t.pow(-2) - (-t.abs()).exp() / (-t.abs()).expm1().square(),
        )

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        param = self._param
        u = named.rand(self._extended_shape(sample_shape), dtype=param.dtype, device=param.device)
        return self.icdf(u)

    def log_prob(self, value: Any) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return logits * value - _log_normalizer(logits)

    def cdf(self, value: Any) -> Tensor:
        """(exp(t x) - 1) / (exp(t) - 1), for positive t both times exp(-t)."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        inside = (
            _mirrored(logits, value, lambda t, x: (t * x).expm1() / t.expm1())
            .where(value > 0, 0.0)
            .where(value < 1, 1.0)
        )
        return inside

    def icdf(self, value: Any) -> Tensor:
        """log(1 + u (exp(t) - 1)) / t."""
        logits, value = broadcast_all(self.logits, value)
        return _mirrored(logits, value, lambda t, u: (u * t.expm1()).log1p() / t)

    def entropy(self) -> Tensor:
        return _log_normalizer(self.logits) - self.logits * self.mean

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return _log_normalizer(natural_params[0])


def _mirrored(logits: Tensor, x: Any, curve: Callable[[Any, Any], Any]) -> Tensor:
    """curve(t, x) for negative t; 1 - curve(-t, 1 - x), which is as much, for positive ones, and x at 0.  (*), (*) -> (*)"""
    rising, flat = logits > 0, logits.abs() < 1e-6
    t = (-logits.abs()).masked_fill(flat, -1.0)
    found = curve(t, named.where(rising, 1 - x, x))
    return named.where(flat, x, named.where(rising, 1 - found, found))
