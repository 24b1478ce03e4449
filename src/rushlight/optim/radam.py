"""RAdam."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, advance, penalties
from rushlight.tensor import Tensor

__all__ = ["RAdam", "radam"]


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

    _kernel, _states = "radam", ("exp_avg", "exp_avg_sq")
    _formula = staticmethod(rules.radam)

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

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        names = ("lr", "eps", "weight_decay", "decoupled_weight_decay", "maximize")
        return *group["betas"], *(group[name] for name in names)

    def _row(self, state: dict[str, Any], options: Any) -> tuple[Any, ...]:
        beta1, beta2, lr, eps, penalty, decoupled, maximize = options
        step = advance(state)
        rectified = _rectification(step, number(beta2))
        scale = 0.0 if rectified is None else rectified * (1 - beta2**step) ** 0.5
        return (lr / (1 - beta1**step), scale, beta1, beta2, eps, *penalties(lr, penalty, decoupled),
                -1.0 if maximize else 1.0)  # fmt: skip


def _rectification(step: float, beta2: float) -> float | None:
    """What makes up for the variance of the adaptive rate at this step; None while that is unbounded."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5.0:
        return None
    up = (length - 4) * (length - 2) * longest
    return float((up / ((longest - 4) * (longest - 2) * length)) ** 0.5)


radam = on_lists(
    RAdam,
    "exp_avgs exp_avg_sqs state_steps",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    "beta1 beta2 lr weight_decay eps",
)
