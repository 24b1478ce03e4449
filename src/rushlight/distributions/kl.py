"""Kullback-Leibler divergences: a table of closed forms by pairs of families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.caller import warn
from rushlight.distributions.distribution import Distribution
from rushlight.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_KL_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator for a function (p, q) -> KL(p || q) of two families; the nearest registered base classes count.

    Any classes: one may be a mixin that distributions of several families have. Raises TypeError for what is no class.
    """
    for what, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {what} to be a class, of distributions, but got {kind!r}")

    def add(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        return formula

    return add


def _formula(type_p: type, type_q: type) -> Formula:
    """The formula whose families are nearest in the order of base classes, those of p first.

    Warns where those of q first would be another one. Raises NotImplementedError without any.
    """
    pairs = [(p, q) for p in type_p.__mro__ for q in type_q.__mro__ if (p, q) in _KL_REGISTRY]
    if not pairs:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type {type_q.__name__}"
        )
    by_q = min(pairs, key=lambda pair: type_q.__mro__.index(pair[1]))
    if _KL_REGISTRY[by_q] is not _KL_REGISTRY[pairs[0]]:
        name = f"{type_p.__name__}, {type_q.__name__}"
        warn(f"Ambiguous kl_divergence({name}). Please register_kl({name})", RuntimeWarning)
    return _KL_REGISTRY[pairs[0]]


def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """KL(p || q) of one exponential family, by its normalizer.  Raises NotImplementedError for two families."""
    from rushlight.distributions.exp_family import bregman

    return bregman(p, q)


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the expectation under p of log p - log q.  -> (*batch), broadcast

    Raises NotImplementedError for pairs without a closed form here: see `register_kl`.

    >>> import rushlight as torch
    >>> from rushlight.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(torch.tensor([0.0, 1.0]), 1.0), Normal(0.0, 1.0))
    tensor([0.0000, 0.5000])
    """
    return _formula(type(p), type(q))(p, q)
