"""RAdam."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.optim.optimizer import ParamsT
from rushlight.optim.stepper import Stepper, advance, check, check_betas, check_lr, is_zero, lerp, number, regularized
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

    _fill: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

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
        check_lr(lr)
        check(eps >= 0.0, "Invalid epsilon value: {}", eps)
        check_betas(betas)
        check(number(weight_decay) >= 0.0, "Invalid weight_decay value: {}", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _numbers(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        step = advance(state)
        names = ("lr", "eps", "weight_decay", "maximize", "decoupled_weight_decay")
        return {
            "step": step,
            "beta1": beta1,
            "beta2": beta2,
            "rectified": _rectification(step, number(beta2)),
            **{name: group[name] for name in names},
        }

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
        beta1: Any,
        beta2: Any,
        rectified: float | None,
        eps: float,
        weight_decay: Any,
        maximize: bool,
        decoupled_weight_decay: bool,
    ) -> tuple[Any, ...]:
        grad = regularized(param, grad, 0 if decoupled_weight_decay else weight_decay, maximize)
        if decoupled_weight_decay and not is_zero(weight_decay):
            param = param * (1 - lr * weight_decay)
        exp_avg = lerp(exp_avg, grad, 1 - beta1)
        exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
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
