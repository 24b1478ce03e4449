"""Muon."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.arrays import Array
from rushlight.basics.size import Size
from rushlight.kernels.products import product, ways
from rushlight.kernels.reference.optim import blocks
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, check_lr, given, number
from rushlight.optim.stepper import Stepper, wide, zeros
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor

__all__ = ["Muon"]

ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Stepper):
    """Muon (Jordan et al., 2024): momentum for matrices, made orthogonal before the step.

    Args:
        params: matrices (2-d tensors), named or in groups.
        lr: learning rate, a number or a tensor of one element.
        weight_decay: the part of the parameter taken off at each step, times `lr`.
        momentum: how much of the running mean of gradients is kept.
        nesterov: look ahead along the momentum.
        ns_coefficients: the polynomial of the Newton-Schulz iteration.
        eps: the smallest norm that a matrix is divided by.
        ns_steps: how often the iteration is done, at most 99.
        adjust_lr_fn: "original" (the default) scales the rate of an A x B matrix by sqrt(max(1, A / B)),
            "match_rms_adamw" by 0.2 sqrt(max(A, B)).

    State of a parameter: momentum_buffer.  The iteration rounds to bfloat16 and adds in float32.
    """

    elementwise = False

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(momentum >= 0.0, "momentum should be >= 0 but is: {}", momentum)
        check(number(weight_decay) >= 0.0, "weight decay should be >= 0 but is: {}", weight_decay)
        check(adjust_lr_fn in ADJUSTMENTS, "Adjust learning rate function {} is not supported", adjust_lr_fn)
        super().__init__(params, given(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                check(
                    p.ndim == 2, "Muon only supports 2D parameters whereas we found a parameter with size: {}", p.shape
                )

    def _work(self, array: Any, group: dict[str, Any]) -> int:
        """Whole matrices: the matrix, its product with itself and one more of either."""
        small = min(array.shape) ** 2
        return int(4 * (array.size + small + max(array.size, small)))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        if p.dtype.is_complex:
            raise RuntimeError("Muon does not support complex parameters")
        state["momentum_buffer"] = zeros(p)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: tuple[str, ...]
    ) -> None:
        buffer, lr = state["momentum_buffer"], group["lr"]
        lr = lr._array.reshape(())[()] if isinstance(lr, Tensor) else lr  # a NumPy scalar: rounds as tensors do
        ahead = np.empty(p.shape, np.float32)
        momentum = group["momentum"]
        for to, kept, g in blocks(ahead, buffer._array, grad._array):
            mean = wide(kept) + (1 - momentum) * (wide(g) - wide(kept))
            kept[...] = mean
            to[...] = _rounded(wide(g) + momentum * (mean - wide(g)) if group["nesterov"] else mean)
        change = orthogonal(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rate, decay = float(lr * _adjustment(p.shape, group["adjust_lr_fn"])), float(1 - lr * group["weight_decay"])
        for param, step in blocks(p._array, change):
            param[...] = wide(param) * decay - rate * step.astype(wide(param).dtype, copy=False)
        bump(p, STEP)
        bump(buffer, STEP)


def orthogonal(x: Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> Array:
    """The nearest matrix with orthogonal rows or columns, about, by a Newton-Schulz iteration of fifth degree.

    x: (A, B) float32, of bfloat16 values, overwritten.
    """
    if steps >= 100:
        raise ValueError(f"Number of steps must be less than 100 for computational efficiency, but is {steps}")
    if not x.size:
        return x
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x /= np.float32(max(float(_rounded(np.float32(np.sqrt(np.vdot(x, x))))), eps))
    if ways():
        found = _by_halves(x.astype(ml_dtypes.bfloat16, order="C"), coefficients, steps)
        return found.T if tall else found
    _round(x)
    for _ in range(steps):
        gram = _round(backend.matmul(x, x.T))
        square = backend.matmul(gram, gram)
        square *= np.float32(c)
        gram *= np.float32(b)
        gram += square
        del square
        change = backend.matmul(_round(gram), x)
        del gram
        x *= np.float32(a)
        x += change
        del change
        _round(x)
    return x.T if tall else x


def _by_halves(x: Array, coefficients: tuple[float, float, float], steps: int) -> Array:
    """The iteration where the processor multiplies bfloat16 matrices, which the results are too.  (A, B)"""
    a, b, c = coefficients
    found: Any = x
    for _ in range(steps):
        gram: Any = product(found, found.T)
        gram = product(gram, gram, more=gram, alpha=c, beta=b)
        found = product(gram, found, more=found, beta=a)
    return np.asarray(found)


def _round(x: Array) -> Array:
    """`x`, a matrix, with its values rounded to bfloat16 in place."""
    for (block,) in blocks(x):
        block[...] = block.astype(ml_dtypes.bfloat16)
    return x


def _rounded(x: object) -> Array:
    """Values rounded to bfloat16, in float32."""
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(np.float32)


def _adjustment(shape: Size, how: str | None) -> float:
    rows, columns = shape
    if how == "match_rms_adamw":
        return float(0.2 * max(rows, columns) ** 0.5)
    return float(max(1, rows / columns) ** 0.5)
