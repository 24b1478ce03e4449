"""CAME."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.reference.optim import blocks, fitted, runs_of_rows
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, check_lr, given, number
from rushlight.optim.stepper import Stepper, wide, zeros
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor, wrap

__all__ = ["CAME"]

FACTORED = ("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_res_row", "exp_avg_res_col")


class CAME(Stepper):
    """Adafactor with momentum, slowed down where the momentum and the gradient disagree.

    Luo et al., "CAME: Confidence-guided Adaptive Memory Efficient Optimization" (2023, arXiv:2307.02047, algorithm 2): of a
    matrix row and column means of the squared gradient are kept, and of the squared distance between the normalized
    gradient and its running mean; the step is that mean over the root of what the latter two give.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        eps: added to squared gradients, and to squared distances.
        clip_threshold: normalized gradients are cut to this root mean square.
        betas: how much is kept of the mean, of the squared gradients, and of the squared distances.
        weight_decay: the part of the parameter taken off at each step, times `lr`.
        maximize: step along the gradient instead of against it.
        foreach: accepted; every way of stepping is in place and gives the same numbers.

    State of a parameter: exp_avg, and of matrices (the last two dimensions) exp_avg_sq_row, exp_avg_sq_col, exp_avg_res_row,
    exp_avg_res_col, else exp_avg_sq.  Raises ValueError for options out of range, RuntimeError for complex parameters.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.Linear(100, 200)
        >>> optimizer = torch.optim.CAME(layer.parameters(), lr=2e-4)
        >>> layer(torch.ones(1, 100)).sum().backward()
        >>> optimizer.step()
        >>> sum(t.nbytes for t in optimizer.state[layer.weight].values()) / layer.weight.numel()
        4.12
    """

    elementwise = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-4,
        eps: tuple[float, float] = (1e-30, 1e-16),
        clip_threshold: float = 1.0,
        betas: tuple[float, float, float] = (0.9, 0.999, 0.9999),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(min(eps) >= 0.0, "Invalid epsilon values: {}", eps)
        check(clip_threshold > 0.0, "Invalid clip_threshold: {}", clip_threshold)
        check(
            len(betas) == 3 and all(0.0 <= b < 1.0 for b in betas), "Invalid betas, expected three in [0, 1): {}", betas
        )
        check(number(weight_decay) >= 0.0, "Invalid weight_decay value: {}", weight_decay)
        super().__init__(params, given(locals()))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any]:
        if len(shape) < 2:
            return {"exp_avg": (shape, dtype), "exp_avg_sq": (shape, dtype)}
        rows, columns = shape[:-1], (*shape[:-2], shape[-1])
        return {"exp_avg": (shape, dtype), **{n: (rows if n.endswith("row") else columns, dtype) for n in FACTORED}}

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        array = p._array
        if array.dtype.kind == "c":
            raise RuntimeError("CAME does not support complex parameters")
        for name, (shape, dtype) in self._layout(array.shape, array.dtype, group).items():
            state[name] = zeros(p) if shape == array.shape else wrap(np.zeros(shape, dtype))

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: Any) -> None:
        param, g, mean = fitted(p._array, grad._array, state["exp_avg"]._array)
        kept = {name: t._array for name, t in state.items()}
        with np.errstate(all="ignore"):
            if param.ndim < 2:
                _step_vector(param, g, mean, kept["exp_avg_sq"], group)
            else:
                scales = _scales(kept["exp_avg_sq_row"], kept["exp_avg_sq_col"])
                _fold(
                    kept["exp_avg_sq_row"],
                    kept["exp_avg_sq_col"],
                    g,
                    group["betas"][1],
                    lambda at, part: wide(g[at][part]) ** 2 + group["eps"][0],
                )
                cut = max(1.0, _rms(g, scales) / group["clip_threshold"])
                _momentum(g, mean, scales, cut, group)
                _fold(
                    kept["exp_avg_res_row"],
                    kept["exp_avg_res_col"],
                    g,
                    group["betas"][2],
                    lambda at, part: (
                        (_normal(g, scales, at, part, cut, group) - wide(mean[at][part])) ** 2 + group["eps"][1]
                    ),
                )
                _descend(param, mean, _scales(kept["exp_avg_res_row"], kept["exp_avg_res_col"]), group)
        for t in (p, *state.values()):
            bump(t, STEP)


Scales = Callable[[Any], tuple[Any, Any]]


def _places(array: Array) -> Iterator[tuple[tuple[int, ...], slice]]:
    """Every matrix of an array, in runs of rows."""
    return ((at, part) for at in np.ndindex(array.shape[:-2]) for part in runs_of_rows(array[at]))


def _fold(rows: Array, columns: Array, like: Array, beta: float, values: Callable[..., Any]) -> None:
    """Fold the row and column means of values, found run by run, into their running means."""
    for at in np.ndindex(like.shape[:-2]):
        row, column = np.zeros(like.shape[-2]), np.zeros(like.shape[-1])
        for part in runs_of_rows(like[at]):
            found = values(at, part)
            row[part] = found.mean(axis=1)
            column += found.sum(axis=0)
        column /= max(like.shape[-2], 1)
        for kept, new in ((rows[at], row), (columns[at], column)):
            kept[...] = beta * wide(kept) + (1 - beta) * new.astype(wide(kept).dtype)


def _scales(rows: Array, columns: Array) -> Scales:
    """A function from a matrix's place to the factors of its rows and columns: 1 / sqrt(row / mean), 1 / sqrt(column)."""

    def found(at: Any) -> tuple[Any, Any]:
        row, column = wide(rows[at]), wide(columns[at])
        return 1 / np.sqrt(row / row.mean())[:, None], 1 / np.sqrt(column)

    return found


def _normal(g: Array, scales: Scales, at: Any, part: slice, cut: float, group: dict[str, Any]) -> Any:
    """Some rows of the normalized gradient."""
    row, column = scales(at)
    found = wide(g[at][part]) * row[part]
    found *= column
    found *= (-1 if group["maximize"] else 1) / cut
    return found


def _rms(g: Array, scales: Scales) -> float:
    """The root mean square of the normalized gradient."""
    plain = {"maximize": False}
    total = sum(float(np.square(_normal(g, scales, at, part, 1.0, plain)).sum()) for at, part in _places(g))
    return float((total / max(g.size, 1)) ** 0.5)


def _momentum(g: Array, mean: Array, scales: Scales, cut: float, group: dict[str, Any]) -> None:
    """Update the running mean of the normalized gradient."""
    beta = group["betas"][0]
    for at, part in _places(g):
        mean[at][part] = beta * wide(mean[at][part]) + (1 - beta) * _normal(g, scales, at, part, cut, group)


def _descend(param: Array, mean: Array, scales: Scales, group: dict[str, Any]) -> None:
    """Step by the mean over the root of what it was off by."""
    lr = number(group["lr"])
    keep = 1 - lr * number(group["weight_decay"])
    for at, part in _places(param):
        row, column = scales(at)
        param[at][part] = wide(param[at][part]) * keep - lr * wide(mean[at][part]) * row[part] * column


def _step_vector(param: Array, g: Array, mean: Array, square: Array, group: dict[str, Any]) -> None:
    """A step of what is no matrix: by the mean of its normalized gradient."""
    beta1, beta2, _ = group["betas"]
    for kept, grad in blocks(square, g):
        kept[...] = beta2 * wide(kept) + (1 - beta2) * (wide(grad) ** 2 + group["eps"][0])
    total = sum(float((wide(grad) ** 2 / wide(kept)).sum()) for kept, grad in blocks(square, g))
    cut = max(1.0, (total / max(g.size, 1)) ** 0.5 / group["clip_threshold"])
    sign, lr = (-1 if group["maximize"] else 1) / cut, number(group["lr"])
    for block, grad, average, kept in blocks(param, g, mean, square):
        moved = beta1 * wide(average) + (1 - beta1) * sign * wide(grad) / np.sqrt(wide(kept))
        average[...] = moved
        block[...] = wide(block) * (1 - lr * number(group["weight_decay"])) - lr * moved
