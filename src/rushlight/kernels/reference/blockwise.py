"""Optimizer steps whose state lies in 8 bits, in NumPy: flat arrays, a scale for every ``BLOCK`` codes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.optim import lion_rule

BLOCK = 256  # elements that share a scale
_MOST, _LEAST = np.finfo(np.float32).max, np.finfo(np.float32).tiny


@functools.cache
def dynamic_map(signed: bool) -> Array:
    """What the 256 codes stand for, ascending.  (256) float32, read-only

    The dynamic map of Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (2022, arXiv:2110.02861, section 1.3):
    seven decades up to 1, each divided into twice as many equal parts as the one below, whose middles are the values; 0
    and 1.  Without a sign its bit doubles the parts.
    """
    values = [0.0, 1.0]
    for decade in range(7):
        edges = np.linspace(0.1, 1, 2 ** (decade + (not signed)) + 1)
        middles = 10.0 ** (decade - 6) * (edges[:-1] + edges[1:]) / 2
        values += [*middles, *(-middles if signed else ())]
    found = np.sort(np.array(values)).astype(np.float32)
    found.flags.writeable = False
    return found


@functools.cache
def _between(signed: bool) -> Array:
    """Where the nearest value changes.  A mean square is divided by its root: it is 0 only where it was."""
    values = dynamic_map(signed).astype(np.float64)
    found: Array = (values[1:] + values[:-1]) / 2
    if not signed:
        found[0] = _LEAST
    return found.astype(np.float32)


def encode(values: Array, signed: bool) -> tuple[Array, Array]:
    """Codes of numbers, and their scales: the largest magnitude of each block.  NaN is 0, and no scale.

    values: (N) float32 or float64.  Returns (N) uint8, (ceil(N / BLOCK)) float32
    """
    count = -(-values.size // BLOCK)
    padded = np.zeros(count * BLOCK, np.float32)
    with np.errstate(all="ignore"):
        padded[: values.size] = values
        rows = np.nan_to_num(padded, nan=0.0, posinf=float(_MOST), neginf=-float(_MOST)).reshape(count, BLOCK)
        scales = np.abs(rows).max(axis=1)
        scales[scales < 4 * _LEAST] = 0
        over = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
        codes = np.searchsorted(_between(signed), (rows * over[:, None]).reshape(-1), side="right")
    return codes.astype(np.uint8)[: values.size], scales


def decode(codes: Array, scales: Array, signed: bool) -> Array:
    """The numbers that codes stand for.  (N) float32"""
    return dynamic_map(signed)[codes] * np.repeat(scales, BLOCK)[: codes.size]


def _step(p: Array, g: Array, states: list[tuple[Array, Array]], rule: Callable[..., tuple[Array, ...]]) -> None:
    """Apply ``rule`` of (parameter, gradient, states), which gives what they become.

    states: codes and scales of each, the second without a sign.
    """
    with np.errstate(all="ignore"):
        wide = [decode(codes, scales, i == 0).astype(p.dtype, copy=False) for i, (codes, scales) in enumerate(states)]
        p[...], *found = rule(p, g, *wide)
        for i, (codes, scales) in enumerate(states):
            codes[...], scales[...] = encode(found[i], i == 0)


def adam_in_blocks(
    p: Array, g: Array, m: Array, v: Array, top1: Array, top2: Array,
    step_size: float, beta1: float, beta2: float, root: float, eps: float, decay: float, shrink: float, sign: float,
) -> None:  # fmt: skip
    def rule(p: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
        p = p * shrink
        d = sign * g + (decay * p if decay else 0)
        m = m + (1 - beta1) * (d - m)
        v = beta2 * v + (1 - beta2) * d * d
        return p - step_size * m / (np.sqrt(v) / root + eps), m, v

    _step(p, g, [(m, top1), (v, top2)], rule)


def sgd_in_blocks(
    p: Array, g: Array, m: Array, top: Array,
    lr: float, momentum: float, dampening: float, decay: float, sign: float, nesterov: int, first: int,
) -> None:  # fmt: skip
    def rule(p: Array, g: Array, m: Array) -> tuple[Array, ...]:
        d = sign * g + (decay * p if decay else 0)
        m = d if first else momentum * m + (1 - dampening) * d
        return p - lr * (d + momentum * m if nesterov else m), m

    _step(p, g, [(m, top)], rule)


def lion_in_blocks(
    p: Array, g: Array, m: Array, top: Array, lr: float, beta1: float, beta2: float, shrink: float, sign: float
) -> None:
    _step(p, g, [(m, top)], lambda p, g, m: lion_rule(p, g, m, lr, beta1, beta2, shrink, sign))
