"""Formulas of optimizers, of a parameter, its gradient and its states, with the numbers of one step: what they become.

Each is written once, for blocks of NumPy's arrays and, to be differentiated, for tensors: `xp` has the functions of either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Value(Protocol):
    """What the formulas compute with: an array or a tensor."""

    def __neg__(self) -> Value: ...
    def __abs__(self) -> Value: ...
    def __add__(self, other: Scalar, /) -> Value: ...
    def __sub__(self, other: Scalar, /) -> Value: ...
    def __rsub__(self, other: Scalar, /) -> Value: ...
    def __mul__(self, other: Scalar, /) -> Value: ...
    def __rmul__(self, other: Scalar, /) -> Value: ...
    def __truediv__(self, other: Scalar, /) -> Value: ...
    def __lt__(self, other: Scalar, /) -> Value: ...
    def __gt__(self, other: Scalar, /) -> Value: ...


Values = tuple[Value, ...]
Scalar = float | Value  # a number of one step: a tensor where it may be differentiated


class Functions(Protocol):
    """The functions that the formulas ask for: NumPy's, or those of tensors."""

    def sqrt(self, a: Value, /) -> Value: ...
    def sign(self, a: Value, /) -> Value: ...
    def zeros_like(self, a: Value, /) -> Value: ...
    def maximum(self, a: Value, b: Value, /) -> Value: ...
    def clip(self, a: Value, least: float, most: float, /) -> Value: ...
    def where(self, condition: Value, a: Value, b: Value, /) -> Value: ...


def _slope(p: Value, g: Value, decay: Scalar, sign: float) -> Value:
    """The gradient with its sign and the penalty; decay: a plain zero leaves that out, a tensor may be differentiated."""
    g = -g if sign < 0 else g
    return g if decay.__class__ in (int, float) and decay == 0 else g + decay * p


def _toward(a: Value, b: Value, weight: Scalar) -> Value:
    """From a to b by a fraction, in the form that is exact at the nearer end, as PyTorch has it."""
    near = weight.__class__ is not float or abs(weight) < 0.5
    return a + weight * (b - a) if near else b - (b - a) * (1 - weight)


def _shrunk(p: Value, shrink: Scalar) -> Value:
    return p if shrink.__class__ in (int, float) and shrink == 1 else p * shrink


def adamax(xp: Functions, p: Value, g: Value, mean: Value, top: Value, *, rate: Scalar, beta1: Scalar, beta2: Scalar,
           eps: float, decay: Scalar, sign: float) -> Values:  # fmt: skip
    """Adam with the largest gradient, slowly forgotten, in place of the mean square."""
    g = _slope(p, g, decay, sign)
    mean, top = _toward(mean, g, 1 - beta1), xp.maximum(beta2 * top, abs(g) + eps)
    return p - rate * mean / top, mean, top


def nadam(
    xp: Functions,
    p: Value,
    g: Value,
    mean: Value,
    square: Value,
    *,
    of_grad: Scalar,
    of_mean: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    correction: Scalar,
    eps: float,
    decay: Scalar,
    shrink: Scalar,
    sign: float,
) -> Values:
    """Adam that looks ahead along its momentum."""
    p = _shrunk(p, shrink)
    g = _slope(p, g, decay, sign)
    mean, square = _toward(mean, g, 1 - beta1), beta2 * square + (1 - beta2) * g * g
    return p - (of_grad * g + of_mean * mean) / (xp.sqrt(square / correction) + eps), mean, square


def radam(xp: Functions, p: Value, g: Value, mean: Value, square: Value, *, rate: Scalar, scale: Scalar,
          beta1: Scalar, beta2: Scalar, eps: float, decay: Scalar, shrink: Scalar, sign: float) -> Values:  # fmt: skip
    """Adam that does not scale steps while the mean square is uncertain: scale is then 0."""
    p = _shrunk(p, shrink)
    g = _slope(p, g, decay, sign)
    mean, square = _toward(mean, g, 1 - beta1), beta2 * square + (1 - beta2) * g * g
    change = rate * mean
    if scale.__class__ not in (int, float) or scale != 0:
        change = change * scale / (xp.sqrt(square) + eps)
    return p - change, mean, square


def asgd(xp: Functions, p: Value, g: Value, average: Value, *, eta: Scalar, mu: Scalar, shrink: Scalar, decay: Scalar,
         sign: float) -> Values:  # fmt: skip
    """Gradient descent, and the average of the parameter."""
    p = p * shrink - eta * _slope(p, g, decay, sign)
    return p, p if mu == 1 else average + mu * (p - average)


def adadelta(xp: Functions, p: Value, g: Value, square: Value, changes: Value, *, lr: Scalar, rho: Scalar, eps: float,
             decay: Scalar, sign: float) -> Values:  # fmt: skip
    """Steps scaled by the ratio of running mean squares of steps and gradients."""
    g = _slope(p, g, decay, sign)
    square = rho * square + (1 - rho) * g * g
    change = xp.sqrt(changes + eps) / xp.sqrt(square + eps) * g
    return p - lr * change, square, rho * changes + (1 - rho) * change * change


def rprop(xp: Functions, p: Value, g: Value, former: Value, size: Value, *, cut: float, grown: float, least: float,
          most: float, sign: float) -> Values:  # fmt: skip
    """A step size for every element, cut where its gradient changed its sign, grown where that was kept."""
    g = -g if sign < 0 else g
    agreement = g * former
    turned, kept = agreement < 0, agreement > 0
    size = xp.clip(xp.where(turned, size * cut, xp.where(kept, size * grown, size)), least, most)
    g = xp.where(turned, xp.zeros_like(g), g)
    return p - xp.sign(g) * size, g, size


RULES: dict[str, Callable[..., Values]] = {
    rule.__name__: rule for rule in (adamax, nadam, radam, asgd, adadelta, rprop)
}
