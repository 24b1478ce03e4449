"""Adamax."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, advance
from rushlight.tensor import Tensor

__all__ = ["Adamax", "adamax"]


class Adamax(Stepper):
    """Adamax (Kingma and Ba, 2014): Adam with the largest gradient, slowly forgotten, in place of the mean square.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the running mean and of the largest gradient is kept at each step.
        eps: added to the magnitude of each gradient.
        weight_decay: L2 penalty.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.
        capturable: for graph capture on a GPU; refused on the CPU.

    State of a parameter: step, exp_avg, exp_inf.
    """

    _kernel, _states = "adamax", ("exp_avg", "exp_inf")
    _formula = staticmethod(rules.adamax)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, checked(locals()))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["maximize"]

    def _row(self, state: dict[str, Any], options: Any) -> tuple[Any, ...]:
        lr, beta1, beta2, eps, decay, maximize = options
        return lr / (1 - beta1 ** advance(state)), beta1, beta2, eps, decay, -1.0 if maximize else 1.0


adamax = on_lists(
    Adamax,
    "exp_avgs exp_infs state_steps",
    "foreach maximize differentiable capturable has_complex",
    "eps beta1 beta2 lr weight_decay",
)
