"""Optimizers that keep the moments of a matrix's gradient in a space of low rank: GaLore and APOLLO.

Of a matrix they keep the moments of max(m, n) x rank numbers, where Adam keeps two of m x n.  The step is made in runs of
rows: nothing of the matrix's size is made beside its gradient, which a step inside backward frees at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics.arrays import Array
from rushlight.kernels.reference.optim import fitted, runs_of_rows
from rushlight.optim.memory import zeros_like
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, checked, number
from rushlight.optim.stepper import Stepper, wide
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor, wrap

__all__ = ["APOLLO", "GaLore"]

AT_ONCE = 1 << 18  # elements of a matrix that are worked on at once
FLOAT32 = np.dtype(np.float32)
SIDES = {"left": (True, False), "right": (False, True), "full": (True, True)}


def onto(matrix: Array, left: Array | None, right: Array | None) -> Any:
    """A matrix (m, n) in the space of `left` (m, r) and `right` (n, r): (r, n), (m, r) or (r, r)."""
    some = runs_of_rows(matrix, AT_ONCE)
    if left is None:
        return np.concatenate([wide(matrix[at]) @ right for at in some])
    return sum(left[at].T @ (wide(matrix[at]) if right is None else wide(matrix[at]) @ right) for at in some)


def widened(dtype: np.dtype[Any]) -> Any:
    """The dtype in which moments of a parameter are kept."""
    return FLOAT32 if dtype.itemsize == 2 else dtype


class LowRank(Stepper):
    """What the two share: groups, which parameters are matrices of more than the rank, and AdamW for the others."""

    elementwise = False
    _counts_in_tensors = False
    _own_dtypes = frozenset({"step", "exp_avg", "exp_avg_sq", "left", "right"})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, whose rank may be None: plain AdamW."""
        super().add_param_group(param_group)
        group, rank = self.param_groups[-1], self.param_groups[-1]["rank"]
        check(
            rank is None or (isinstance(rank, int) and rank >= 1),
            "Invalid rank: {}, expected an int of at least 1",
            rank,
        )
        check(
            group["update_proj_gap"] >= 1, "Invalid update_proj_gap: {}, expected at least 1", group["update_proj_gap"]
        )

    def _low(self, shape: tuple[int, ...], group: dict[str, Any]) -> bool:
        return group["rank"] is not None and len(shape) == 2 and min(shape) > group["rank"]

    def _sides(self, shape: tuple[int, ...], group: dict[str, Any]) -> tuple[bool, bool]:
        """Whether rows, and columns, are projected."""
        raise NotImplementedError

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any]:
        kept: tuple[int, ...] = shape
        if self._low(shape, group):
            left, right = self._sides(shape, group)
            kept = (group["rank"] if left else shape[0], group["rank"] if right else shape[1])
        return {"exp_avg": (kept, widened(dtype)), "exp_avg_sq": (kept, widened(dtype))}

    def _work(self, array: Array, group: dict[str, Any]) -> int:
        """The gradient and the step in the small space, and some rows."""
        if not self._low(array.shape, group):
            return super()._work(array, group) if array.itemsize == 2 else 0
        low = max(array.shape) * group["rank"]
        return int(4 * max(3 * low, (3 if array.itemsize == 2 else 2) * min(array.size, AT_ONCE) + low))

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        array = p._array
        if array.dtype.kind == "c":
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters: use AdamW")
        state["step"] = 0
        for name, (shape, dtype) in self._layout(array.shape, array.dtype, group).items():
            state[name] = wrap(zeros_like(array, dtype) if shape == array.shape else np.zeros(shape, dtype))

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: Any) -> None:
        state["step"] += 1
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if self._low(p._array.shape, group):
            with np.errstate(all="ignore"):
                param, g = fitted(p._array, grad._array)
                self._step_low(param, g, state, group)
        else:
            names = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
            numbers: tuple[Any, ...] = (*(number(x) for x in names), True, group["maximize"])
            kernels.adam(p._array, grad._array, mean._array, square._array, None, state["step"], *numbers)
        for t in (p, mean, square):
            bump(t, STEP)

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _step_low(self, p: Array, grad: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
        """A step of a matrix of more than the rank."""
        raise NotImplementedError


def normalized(low: Array, state: dict[str, Any], group: dict[str, Any]) -> Any:
    """Adam's direction for a gradient in the small space, whose moments are updated."""
    beta1, beta2 = (number(b) for b in group["betas"])
    mean, square, step = state["exp_avg"]._array, state["exp_avg_sq"]._array, state["step"]
    mean += (1 - beta1) * (low - mean)
    square *= beta2
    square += (1 - beta2) * low * low
    denominator = np.sqrt(square)
    denominator /= (1 - beta2**step) ** 0.5
    denominator += group["eps"]
    return np.divide(mean, denominator, out=denominator) * (1 / (1 - beta1**step))


class GaLore(LowRank):
    """AdamW on matrices' gradients projected onto their leading singular vectors.

    Zhao et al., "GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection" (2024, arXiv:2403.03507, algorithm 2): of
    a matrix with gradient G the moments are those of R = P^T G, P being the leading left singular vectors of a gradient
    every `update_proj_gap` steps ago or less, and the step is scale * P N for Adam's direction N in the small space.

    Args:
        params: tensors, named tensors, or groups of them; a group's rank of None makes it plain AdamW.
        lr: learning rate, a number or a tensor of one element.
        betas, eps, weight_decay: as those of `AdamW`.
        rank: singular vectors that are kept.  Parameters that are no matrix, or of which a side is not larger, are stepped
            as by `AdamW`.
        update_proj_gap: steps after which the vectors are found anew.
        scale: by which steps of matrices are multiplied.
        proj_type: "std" projects the smaller side, "reverse_std" the larger, "left" rows, "right" columns, "full" both.
        maximize: step along the gradient instead of against it.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.

    State of a matrix (m, n), for m <= n: step, left (m, rank), exp_avg and exp_avg_sq (rank, n).  The vectors are found as
    eigenvectors of the smaller of G G^T and G^T G.  Raises ValueError for options out of range.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.Linear(512, 256)
        >>> optimizer = torch.optim.GaLore(layer.parameters(), lr=0.01, rank=8)
        >>> layer(torch.randn(4, 512)).sum().backward()
        >>> optimizer.step()
        >>> {name: tuple(t.shape) for name, t in optimizer.state[layer.weight].items() if name != "step"}
        {'exp_avg': (8, 512), 'exp_avg_sq': (8, 512), 'left': (256, 8)}
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        rank: int | None = 128,
        update_proj_gap: int = 200,
        scale: float = 0.25,
        proj_type: str = "std",
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, checked(locals()))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, whose rank may be None: plain AdamW."""
        super().add_param_group(param_group)
        kind = self.param_groups[-1]["proj_type"]
        check(
            kind in (*SIDES, "std", "reverse_std"),
            "Invalid proj_type: {!r}, expected std, reverse_std, left, right or full",
            kind,
        )

    def _work(self, array: Array, group: dict[str, Any]) -> int:
        """What finds the space, too."""
        return max(super()._work(array, group), 20 * min(array.shape) ** 2 if self._low(array.shape, group) else 0)

    def _sides(self, shape: tuple[int, ...], group: dict[str, Any]) -> tuple[bool, bool]:
        kind = group["proj_type"]
        if kind in SIDES:
            return SIDES[kind]
        right = (shape[0] >= shape[1]) == (kind == "std")
        return not right, right

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any]:
        found = super()._layout(shape, dtype, group)
        if self._low(shape, group):
            for name, size, used in zip(("left", "right"), shape, self._sides(shape, group), strict=True):
                if used:
                    found[name] = (size, group["rank"]), widened(dtype)
        return found

    def _step_low(self, p: Array, grad: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
        rank = group["rank"]
        if (state["step"] - 1) % group["update_proj_gap"] == 0:
            for name, matrix in (("left", grad.T), ("right", grad)):
                if name in state:
                    leading(matrix, rank, state[name]._array)
                    bump(state[name], STEP)
        left, right = (state[name]._array if name in state else None for name in ("left", "right"))
        low = onto(grad, left, right)
        if group["maximize"]:
            np.negative(low, out=low)
        step = normalized(low, state, group)
        del low
        lr = number(group["lr"])
        step *= lr * group["scale"]
        if left is not None and right is not None:
            step = step @ right.T
        for at in runs_of_rows(p, AT_ONCE):
            change = step[at] @ right.T if left is None and right is not None else left[at] @ step  # type: ignore[index]
            p[at] = wide(p[at]) * (1 - lr * number(group["weight_decay"])) - change


def leading(matrix: Array, rank: int, to: Array) -> None:
    """Write the leading right singular vectors of a matrix (m, n) to (n, rank)."""
    gram: Any = sum(part.T @ part for part in (wide(matrix[at]) for at in runs_of_rows(matrix, AT_ONCE)))
    if np.isfinite(gram).all():
        to[...] = np.linalg.eigh(gram)[1][:, : -rank - 1 : -1]
    else:  # the gradient is not finite, nor will the parameter be
        to[...] = np.eye(*to.shape, dtype=to.dtype)


class APOLLO(LowRank):
    """Gradient descent on matrices with a rate for each channel, which Adam finds in a random space of low rank.

    Zhu et al., "APOLLO: SGD-like Memory, AdamW-level Performance" (2024, arXiv:2412.05270, algorithm 1): a channel of the
    gradient G, along the larger side, is multiplied by the ratio of the norms of that channel in Adam's direction for
    R = P G and in R itself, with P of independent normal numbers of variance 1 / rank.

    Args:
        params: tensors, named tensors, or groups of them; a group's rank of None makes it plain AdamW.
        lr: learning rate, a number or a tensor of one element.
        betas, eps, weight_decay: as those of `AdamW`.
        rank: of the space.  Parameters that are no matrix, or of which a side is not larger, are stepped as by `AdamW`.
        update_proj_gap: steps after which another space is drawn.
        scale: by which steps of matrices are multiplied.  For rank 1 the paper (APOLLO-Mini) takes the square root of 128.
        scale_type: "channel", or "tensor" for one rate for the whole matrix, as APOLLO-Mini has it.
        growth: the largest ratio of the norms of two steps in succession.
        seed: of the random numbers, which are drawn again for each step and not kept.
        maximize: step along the gradient instead of against it.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.

    State of a matrix (m, n), for m <= n: step, exp_avg and exp_avg_sq (rank, n), norm, a number.  Raises ValueError for
    options out of range.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.Linear(512, 256)
        >>> mini = torch.optim.APOLLO(layer.parameters(), lr=0.01, rank=1, scale_type="tensor", scale=128**0.5)
        >>> layer(torch.randn(4, 512)).sum().backward()
        >>> mini.step()
        >>> mini.state[layer.weight]["exp_avg"].shape
        torch.Size([1, 512])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        rank: int | None = 128,
        update_proj_gap: int = 200,
        scale: float = 1.0,
        scale_type: str = "channel",
        growth: float = 1.01,
        seed: int = 0,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        check(scale_type in ("channel", "tensor"), "Invalid scale_type: {!r}, expected channel or tensor", scale_type)
        check(growth >= 1.0, "Invalid growth: {}, expected at least 1", growth)
        super().__init__(params, checked(locals()))

    def _sides(self, shape: tuple[int, ...], group: dict[str, Any]) -> tuple[bool, bool]:
        return shape[0] <= shape[1], shape[0] > shape[1]

    def _step_low(self, p: Array, grad: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
        left = self._sides(p.shape, group)[0]
        drawn = [group["seed"], *p.shape, (state["step"] - 1) // group["update_proj_gap"]]
        space = np.random.default_rng(drawn).standard_normal((min(p.shape), group["rank"]), np.float32)
        space *= group["rank"] ** -0.5
        space = space.astype(state["exp_avg"]._array.dtype, copy=False)
        low = onto(grad, space if left else None, None if left else space)
        del space
        if group["maximize"]:
            np.negative(low, out=low)
        step = normalized(low, state, group)
        axis = None if group["scale_type"] == "tensor" else 0 if left else 1
        rates = np.linalg.norm(step, axis=axis, keepdims=True) / (np.linalg.norm(low, axis=axis, keepdims=True) + 1e-8)
        del step, low
        rates = rates * (self._limit(grad, rates, state, group["growth"]) * group["scale"] * number(group["lr"]))
        rates = np.broadcast_to(
            -rates if group["maximize"] else rates, (1 if left else len(p), p.shape[1] if left else 1)
        )
        keep = 1 - number(group["lr"]) * number(group["weight_decay"])
        for at in runs_of_rows(p, AT_ONCE):
            p[at] = wide(p[at]) * keep - wide(grad[at]) * (rates if left else rates[at])

    def _limit(self, grad: Array, rates: Array, state: dict[str, Any], growth: float) -> float:
        """What a step is multiplied by, so that its norm is at most `growth` times the last one's."""
        whole = np.broadcast_to(rates, (rates.shape[0] if rates.shape[0] == 1 else len(grad), rates.shape[1]))
        squares = sum(
            float(np.square(wide(grad[at]) * (whole if len(whole) == 1 else whole[at])).sum())
            for at in runs_of_rows(grad, AT_ONCE)
        )
        norm, former = squares**0.5, state.get("norm")
        factor = 1.0 if former is None or norm <= growth * former else growth * former / norm
        state["norm"] = norm * factor
        return factor
