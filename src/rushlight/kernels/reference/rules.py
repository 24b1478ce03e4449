"""Formulas of optimizers, of a parameter, its gradient and its states, with the numbers of one step: what they become.

Each is written once, for blocks of NumPy's arrays and, to be differentiated, for tensors: `xp` has the functions of either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _slope(p: Any, g: Any, decay: Any, sign: float) -> Any:
    """The gradient with its sign and the penalty; decay: a plain zero leaves that out, a tensor may be differentiated."""
    g = -g if sign < 0 else g
    return g if decay.__class__ in (int, float) and decay == 0 else g + decay * p


def _toward(a: Any, b: Any, weight: Any) -> Any:
    """From a to b by a fraction, in the form that is exact at the nearer end, as PyTorch has it."""
    near = weight.__class__ is not float or abs(weight) < 0.5
    return a + weight * (b - a) if near else b - (b - a) * (1 - weight)


def _shrunk(p: Any, shrink: Any) -> Any:
    return p if shrink.__class__ in (int, float) and shrink == 1 else p * shrink


def adamax(xp: Any, p: Any, g: Any, mean: Any, top: Any, *, rate: Any, beta1: Any, beta2: Any, eps: float, decay: Any,
           sign: float) -> tuple[Any, ...]:  # fmt: skip
    """Adam with the largest gradient, slowly forgotten, in place of the mean square."""
    g = _slope(p, g, decay, sign)
    mean, top = _toward(mean, g, 1 - beta1), xp.maximum(beta2 * top, abs(g) + eps)
    return p - rate * mean / top, mean, top


def nadam(xp: Any, p: Any, g: Any, mean: Any, square: Any, *, of_grad: Any, of_mean: Any, beta1: Any, beta2: Any,
          correction: Any, eps: float, decay: Any, shrink: Any, sign: float) -> tuple[Any, ...]:  # fmt: skip
    """Adam that looks ahead along its momentum."""
    p = _shrunk(p, shrink)
    g = _slope(p, g, decay, sign)
    mean, square = _toward(mean, g, 1 - beta1), beta2 * square + (1 - beta2) * g * g
    return p - (of_grad * g + of_mean * mean) / (xp.sqrt(square / correction) + eps), mean, square


def radam(xp: Any, p: Any, g: Any, mean: Any, square: Any, *, rate: Any, scale: Any, beta1: Any, beta2: Any, eps: float,
          decay: Any, shrink: Any, sign: float) -> tuple[Any, ...]:  # fmt: skip
    """Adam that does not scale steps while the mean square is uncertain: scale is then 0."""
    p = _shrunk(p, shrink)
    g = _slope(p, g, decay, sign)
    mean, square = _toward(mean, g, 1 - beta1), beta2 * square + (1 - beta2) * g * g
    change = rate * mean
    if scale.__class__ not in (int, float) or scale != 0:
        change = change * scale / (xp.sqrt(square) + eps)
    return p - change, mean, square


def asgd(xp: Any, p: Any, g: Any, average: Any, *, eta: Any, mu: Any, shrink: Any, decay: Any,
         sign: float) -> tuple[Any, ...]:  # fmt: skip
    """Gradient descent, and the average of the parameter."""
    p = p * shrink - eta * _slope(p, g, decay, sign)
    return p, p if mu == 1 else average + mu * (p - average)


def adadelta(xp: Any, p: Any, g: Any, square: Any, changes: Any, *, lr: Any, rho: Any, eps: float, decay: Any,
             sign: float) -> tuple[Any, ...]:  # fmt: skip
    """Steps scaled by the ratio of running mean squares of steps and gradients."""
    g = _slope(p, g, decay, sign)
    square = rho * square + (1 - rho) * g * g
    change = xp.sqrt(changes + eps) / xp.sqrt(square + eps) * g
    return p - lr * change, square, rho * changes + (1 - rho) * change * change


def rprop(xp: Any, p: Any, g: Any, former: Any, size: Any, *, cut: float, grown: float, least: float, most: float,
          sign: float) -> tuple[Any, ...]:  # fmt: skip
    """A step size for every element, cut where its gradient changed its sign, grown where that was kept."""
    g = -g if sign < 0 else g
    agreement = g * former
    turned, kept = agreement < 0, agreement > 0
    size = xp.clip(xp.where(turned, size * cut, xp.where(kept, size * grown, size)), least, most)
    g = xp.where(turned, xp.zeros_like(g), g)
    return p - xp.sign(g) * size, g, size


RULES: dict[str, Callable[..., tuple[Any, ...]]] = {
    rule.__name__: rule for rule in (adamax, nadam, radam, asgd, adadelta, rprop)
}
