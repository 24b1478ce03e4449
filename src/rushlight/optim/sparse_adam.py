"""Adam for gradients of few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.dispatch import functions as ops
from rushlight.engine.modes import enable_grad, no_grad
from rushlight.kernels.reference.optim import BLOCK
from rushlight.optim.optimizer import Optimizer, ParamsT
from rushlight.optim.options import check, check_betas, check_lr, given, number
from rushlight.optim.parts import stepped
from rushlight.optim.stepper import zeros
from rushlight.tensor import Tensor, wrap

__all__ = ["SparseAdam", "sparse_adam"]

ORDERING = 40  # bytes that `pieces_of` takes for a row, five numbers: rows are put in the order of their places


class SparseAdam(Optimizer):
    """Adam whose moments change only where the gradient, a sparse tensor, has elements; the rest of a parameter stays as it is.

    Args:
        params: dense tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the moments is kept at a step.
        eps: added to the denominator; above 0.
        maximize: step along the gradient instead of against it.

    State of a parameter: step, exp_avg, exp_avg_sq, the last two dense.  Raises ValueError for sparse and complex
    parameters, and, when it steps, RuntimeError for dense gradients.
    """

    _ordering = ORDERING

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check(number(lr) > 0.0, "Invalid learning rate: {}", lr)
        check(eps > 0.0, "Invalid epsilon value: {}", eps)
        check_betas(betas)
        super().__init__(params, given(locals()))
        placed = [([g, i], p) for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"])]
        sparse, complexes = ([at for at, p in placed if p.is_sparse], [at for at, p in placed if p.is_complex()])
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complexes:
            raise ValueError(f"Complex params at indices {complexes}: SparseAdam does not support complex parameters")

    def _zeros(self, param: Tensor) -> Tensor:
        return super()._zeros(param).to_sparse(1)  # of no element

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient.

        closure: evaluates the model again and returns the loss, which `step` returns.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(p, p.grad, group)
        return loss

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": (shape, dtype), "exp_avg_sq": (shape, dtype)}

    def _update(self, p: Tensor, grad: Any, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros(p), exp_avg_sq=zeros(p))
        state["step"] += 1
        for at, values in pieces_of(grad):
            self._change(p, at, -values if group["maximize"] else values, state, group)

    def _change(self, p: Tensor, at: Any, values: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change the elements of a parameter at some places, each named once."""
        beta1, beta2 = (number(beta) for beta in group["betas"])
        mean: Any = self._moved(state["exp_avg"], at, values, beta1)
        square: Any = self._moved(state["exp_avg_sq"], at, values * values, beta2)
        corrected = (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        ops.index_put_(p, at, -number(group["lr"]) * corrected * mean / (square.sqrt() + group["eps"]), accumulate=True)

    @staticmethod
    def _moved(moment: Any, at: Any, values: Tensor, beta: float) -> object:
        """The elements of a moment at some places, moved towards `values`; they are written there."""
        former = moment[at]
        found = former + (values - former) * (1 - beta)
        moment.index_put_(at, found)
        return found


def pieces_of(grad: Any) -> Iterator[tuple[tuple[Tensor, ...], Tensor]]:
    """The places of a sparse gradient and their values, each place once, in order, a block of numbers at a time."""
    indices, values = grad._indices(), grad._values()
    step = max(BLOCK // max(values[:1].numel(), 1), 1)
    if grad.is_coalesced():
        for i in range(0, len(values), step):
            yield tuple(indices[:, i : i + step]), values[i : i + step]
        return
    lead = tuple(grad.shape[: len(indices)])
    key = np.ravel_multi_index(tuple(indices.numpy()), lead) if lead else np.zeros(len(values), np.int64)
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))  # where each place begins among those in order
    del key
    ends = np.append(first, len(order))
    for i in range(0, len(first), step):
        places = slice(first[i], ends[min(i + step, len(first))])
        rows = np.repeat(np.arange(len(first[i : i + step])), np.diff(ends[i : i + step + 1]))
        at = indices[:, wrap(order[first[i : i + step]])]
        yield tuple(at), _added(values, order[places], rows, len(first[i : i + step]), step)


def _added(values: Tensor, order: Array, rows: Array, count: int, step: int) -> Tensor:
    """Sums of values, a block of them at a time.  order: which, rows: into which of `count` rows"""
    total = values.new_zeros((count, *values.shape[1:]))
    for i in range(0, len(order), step):
        total.index_add_(0, wrap(rows[i : i + step]), values[wrap(order[i : i + step])])
    return total


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """A step of `SparseAdam` on lists: parameters and states are changed in place; counts are those with this step."""
    states = {"step": [count - 1 for count in state_steps], "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    stepped(SparseAdam, params, grads, states, eps=eps, betas=(beta1, beta2), lr=lr, maximize=maximize)
