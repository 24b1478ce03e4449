"""Adagrad."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.steps import adagrad_numbers
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.sparse_adam import ORDERING, pieces_of
from rushlight.optim.stepper import Stepper, advance, raw, regularized
from rushlight.tensor import Tensor

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Stepper):
    """Adagrad (Duchi, Hazan and Singer, 2011): steps scaled by the sum of all squared gradients.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        lr_decay: the rate is divided by 1 + (step - 1) * lr_decay.
        weight_decay: L2 penalty.
        initial_accumulator_value: where the sum of squares starts.
        eps: added to the denominator.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter, made at once: step, sum.
    """

    _kernel, _states = "adagrad", ("sum",)
    _ordering = ORDERING

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, checked(locals(), "lr lr_decay eps"))
        for group in self.param_groups:
            for p in group["params"]:
                self._start(self.state[p], p, group)

    def share_memory(self) -> None:
        """Move the sums of squares to where other processes see them."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        super()._start(state, p, group)
        start = number(group["initial_accumulator_value"])
        if start:
            raw(state["sum"])[...] = start

    def _step_rows(self, p: Tensor, grad: Any, group: dict[str, Any]) -> None:
        if number(group["weight_decay"]) != 0:
            raise RuntimeError("Adagrad: weight_decay option is not compatible with sparse gradients: expected 0, got "
                               f"{group['weight_decay']}; give the embedding sparse=False")  # fmt: skip
        state = self.state[p]
        step, total = advance(state), state["sum"]
        rate = number(group["lr"]) / (1 + (step - 1) * number(group["lr_decay"]))
        for at, values in pieces_of(grad):
            values = -values if group["maximize"] else values
            total.index_put_(at, values * values, accumulate=True)
            p.index_put_(at, -rate * values / (total[at].sqrt() + group["eps"]), accumulate=True)

    def _options(self, group: dict[str, Any]) -> Any:
        names = ("lr", "lr_decay", "eps", "weight_decay", "maximize")
        return tuple(number(group[name]) for name in names)

    def _row(self, state: dict[str, Any], options: Any) -> tuple[float, ...]:
        return adagrad_numbers(advance(state), *options)

    @staticmethod
    def _formula(
        xp: Any,
        param: Tensor,
        grad: Any,
        total: Any,
        *,
        step: float,
        lr: Any,
        lr_decay: Any,
        weight_decay: Any,
        eps: float,
        maximize: bool,
    ) -> tuple[Any, ...]:
        grad = regularized(param, grad, weight_decay, maximize)
        total = total + grad * grad
        return param - lr / (1 + (step - 1) * lr_decay) * grad / (xp.sqrt(total) + eps), total


adagrad = on_lists(
    Adagrad,
    "state_sums state_steps",
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)
