"""RAdam."""

from __future__ import annotations

from typing import Any

from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.stepper import Stepper, decayed, moments
from rushlight.tensor import Tensor

__all__ = ["RAdam"]


class RAdam(Stepper):
    """RAdam (Liu et al., 2019): Adam that does not scale steps while the mean square is still uncertain.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the running means of gradient and squared gradient is kept at each step.
        eps: added to the denominator.
        weight_decay: L2 penalty, or, decoupled, the part of the parameter taken off at each step (times `lr`).
        decoupled_weight_decay: decay as AdamW does.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        capturable: for graph capture on a GPU; refused on the CPU.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: step, exp_avg, exp_avg_sq.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, checked(locals(), "lr betas eps weight_decay maximize foreach capturable"))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _numbers(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        numbers = super()._numbers(state, group)
        return {**numbers, "rectified": _rectification(numbers["step"], number(group["betas"][1]))}

    @staticmethod
    def _formula(
        xp: Any,
        param: Any,
        grad: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        *,
        step: float,
        lr: Any,
        betas: Any,
        rectified: float | None,
        eps: float,
        weight_decay: Any,
        maximize: bool,
        decoupled_weight_decay: bool,
    ) -> tuple[Any, ...]:
        beta1, beta2 = betas
        param, grad = decayed(param, grad, lr, weight_decay, maximize, decoupled_weight_decay)
        exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
        change = lr / (1 - beta1**step) * exp_avg
        if rectified is not None:
            change = change * (rectified * (1 - beta2**step) ** 0.5) / (xp.sqrt(exp_avg_sq) + eps)
        return param - change, exp_avg, exp_avg_sq


def _rectification(step: float, beta2: float) -> float | None:
    """What makes up for the variance of the adaptive rate at this step; None while that is unbounded."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5.0:
        return None
    up = (length - 4) * (length - 2) * longest
    return float((up / ((longest - 4) * (longest - 2) * length)) ** 0.5)
