"""Numbers that are drawn until one is accepted, in Python.  See ``native/draws.cpp``."""

from __future__ import annotations

import math
from collections.abc import Callable

Draw = Callable[[], float]

# What Stirling's formula lacks of log(k!), for k up to 9.
_RESTS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
          0.0118967099458917, 0.010411265261972, 0.00925546218271273, 0.00833056343336287)  # fmt: skip


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def log_gamma(uniform: Draw, normal: Draw, shape: float) -> float:
    """The logarithm of a gamma variable of rate 1 (Marsaglia and Tsang, 2000); of a shape below 1 by one more."""
    if not shape > 0:
        return -math.inf
    boost = 0.0
    if shape < 1:
        boost, shape = math.log(1 - uniform()) / shape, shape + 1
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        x = normal()
        while 1 + c * x <= 0:
            x = normal()
        v, u, xx = (1 + c * x) ** 3, 1 - uniform(), x * x
        if u < 1 - 0.0331 * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return math.log(d * v) + boost


def poisson(uniform: Draw, rate: float) -> float:
    """A Poisson variable: below a rate of 10 by products of uniform numbers (Knuth), else Hormann's PTRS (1993)."""
    if rate < 10:
        return _by_products(uniform, rate)
    if math.isinf(rate):
        return rate
    log_rate, b = math.log(rate), 0.931 + 2.53 * math.sqrt(rate)
    a, inverse, inside = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        margin = 0.5 - abs(u)
        k = math.floor((2 * a / margin + b) * u + rate + 0.43) if margin else -1
        if margin >= 0.07 and v <= inside:
            return k
        if k < 0 or (margin < 0.013 and v > margin):
            continue
        if _log(v) + math.log(inverse) - math.log(a / margin**2 + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def _by_products(uniform: Draw, rate: float) -> float:
    end, product, count = math.exp(-rate), 1.0, 0
    while rate:
        product *= uniform()
        if product <= end:
            break
        count += 1
    return count


def _stirling_rest(k: float) -> float:
    if k <= 9:
        return _RESTS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def binomial(uniform: Draw, n: float, p: float) -> float:
    """How many of `n` trials succeed, each with probability `p`."""
    if not (n > 0 and p > 0):
        return 0.0
    if p >= 1:
        return n
    less = p if p <= 0.5 else 1 - p
    count = (_by_rejection if n * less >= 10 else _by_waiting)(uniform, n, less)
    return count if p <= 0.5 else n - count


def _by_waiting(uniform: Draw, n: float, p: float) -> float:
    """By the waiting times between successes."""
    log_failure, trials, count = math.log1p(-p), 0.0, 0
    while True:
        u = uniform()
        trials += math.ceil(math.log(u) / log_failure) if u else math.inf
        if trials > n:
            return count
        count += 1


def _by_rejection(uniform: Draw, n: float, p: float) -> float:
    """By Hormann's BTRS (1993), where np is 10 or more and p at most 1/2."""
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a, inside, alpha = -0.0873 + 0.0248 * b + 0.01 * p, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    c, odds, mode = n * p + 0.5, p / (1 - p), math.floor((n + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        margin = 0.5 - abs(u)
        k = math.floor((2 * a / margin + b) * u + c) if margin else -1
        if margin >= 0.07 and v <= inside:
            return k
        if k < 0 or k > n:
            continue
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1))) + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
                 + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1)) + _stirling_rest(mode) + _stirling_rest(n - mode)
                 - _stirling_rest(k) - _stirling_rest(n - k))  # fmt: skip
        if _log(v * alpha / (a / margin**2 + b)) <= bound:
            return k
