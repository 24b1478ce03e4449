"""Adafactor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.kernels.reference.optim import blocks, fitted, runs_of_rows
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, check_lr, given, number
from rushlight.optim.stepper import Stepper, advance, scalar, wide, zeros
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor, wrap

__all__ = ["Adafactor"]


class Adafactor(Stepper):
    """Adafactor (Shazeer and Stern, 2018): of a matrix's squared gradient only row and column means are kept.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: the largest relative step, a number or a tensor of one element; no less than 1 / sqrt(step) is used.
        beta2_decay: the mean squares forget with weight step ** beta2_decay.
        eps: (smallest root mean square of a gradient, None for that of the dtype; smallest scale of a parameter).
        d: steps are cut to this root mean square.
        weight_decay: the part of the parameter taken off at each step, times `lr`.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.

    State of a parameter: step, and row_var and col_var for matrices (the last two dimensions), else variance.
    """

    elementwise = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(beta2_decay <= 0.0, "beta2_decay should be <= 0 but is: {}", beta2_decay)
        check(eps[0] is None or eps[0] >= 0.0, "epsilon1 should be >= 0 but is: {}", eps[0])
        check(eps[1] >= 0.0, "epsilon2 should be >= 0 but is: {}", eps[1])
        check(d >= 1.0, "Clipping threshold d should be >= 1 but is: {}", d)
        check(number(weight_decay) >= 0.0, "weight_decay should be >= 0 but is: {}", weight_decay)
        super().__init__(params, given(locals()))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ()

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        if p.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        state["step"] = scalar(0.0)
        if p.ndim > 1:
            state["row_var"] = wrap(np.zeros((*p.shape[:-1], 1), p._array.dtype))
            state["col_var"] = wrap(np.zeros((*p.shape[:-2], 1, p.shape[-1]), p._array.dtype))
        else:
            state["variance"] = zeros(p)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: tuple[Any, ...]
    ) -> None:
        eps1, eps2 = group["eps"]
        eps1 = dtypes.finfo(p.dtype).eps if eps1 is None else eps1
        param, g = fitted(p._array, grad._array)
        lr, step = number(group["lr"]), advance(state)
        rate = max(eps2, rms((param,), lambda block: block)) * min(lr, 1 / step**0.5)
        decay = 1 - lr * number(group["weight_decay"])
        weight = step ** group["beta2_decay"]
        with np.errstate(all="ignore"):
            if param.ndim > 1:
                scaled = _factored(state["row_var"], state["col_var"], g, weight, eps1)
            else:
                scaled = _whole(state["variance"], g, weight, eps1)
            norm = sum(_sum_of_squares(change) for _, change in scaled(param)) ** 0.5
            rate /= max(1.0, norm / (max(param.size, 1) ** 0.5 * group["d"]))
            for block, change in scaled(param):
                block[...] = wide(block) * decay - (-rate if group["maximize"] else rate) * change
        bump(p, STEP)


Scaled = Callable[[Any], Iterator[tuple[Any, Any]]]


def rms(arrays: tuple[Array, ...], formula: Callable[..., Any]) -> float:
    """The root of the mean square of a formula's values, found in blocks."""
    total = sum(_sum_of_squares(formula(*(wide(a) for a in block))) for block in blocks(*arrays))
    return float((total / max(arrays[0].size, 1)) ** 0.5)


def _sum_of_squares(values: Array) -> float:
    return float(np.vdot(values, values))


def _whole(variance: Tensor, grad: Array, weight: float, eps1: float) -> Scaled:
    """Update the mean square of a vector; then a function that gives its parts with their scaled gradients."""
    for kept, g in blocks(variance._array, grad):
        g = wide(g)
        kept[...] = wide(kept) + weight * (g * g - wide(kept))
    bump(variance, STEP)

    def scaled(param: Array) -> Iterator[tuple[Any, Any]]:
        for block, kept, g in blocks(param, variance._array, grad):
            yield block, wide(g) / np.sqrt(np.maximum(wide(kept), eps1 * eps1))

    return scaled


def _factored(row_var: Tensor, col_var: Tensor, grad: Array, weight: float, eps1: float) -> Scaled:
    """Update the mean squares of rows and columns; then a function that gives parts with their scaled gradients."""
    rows, columns = row_var._array, col_var._array
    for at in np.ndindex(grad.shape[:-2]):
        row_means, column_means = _mean_squares(grad[at])
        for kept, new in ((rows[at][:, 0], row_means), (columns[at][0], column_means)):
            kept[...] = wide(kept) + weight * (new - wide(kept))
    bump(row_var, STEP)
    bump(col_var, STEP)

    def scaled(param: Array) -> Iterator[tuple[Any, Any]]:
        for at in np.ndindex(grad.shape[:-2]):
            row, column = wide(rows[at]), wide(columns[at])
            column = column / max(float(row.mean()), eps1)
            for part in runs_of_rows(grad[at]):
                variance = np.maximum(row[part] * column, eps1 * eps1)
                yield param[at][part], wide(grad[at][part]) / np.sqrt(variance)

    return scaled


def _mean_squares(matrix: Array) -> tuple[Any, Any]:
    """Mean squares of the rows and of the columns of a matrix."""
    row_means, totals = np.zeros(len(matrix)), np.zeros(matrix.shape[1])
    for part in runs_of_rows(matrix):
        squares = wide(matrix[part]) ** 2
        row_means[part], totals = squares.mean(axis=1), totals + squares.sum(axis=0)
    kind = wide(matrix[:0]).dtype
    return row_means.astype(kind), (totals / max(len(matrix), 1)).astype(kind)
