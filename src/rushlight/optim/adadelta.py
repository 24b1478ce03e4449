"""Adadelta."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper
from rushlight.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Stepper):
    """Adadelta (Zeiler, 2012): steps scaled by the ratio of running mean squares of steps and gradients.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: what the steps are multiplied by, a number or a tensor of one element.
        rho: how much of the running mean squares is kept at each step.
        eps: added to both mean squares.
        weight_decay: L2 penalty.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        capturable: for graph capture on a GPU; refused on the CPU.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: step, square_avg, acc_delta.
    """

    _kernel, _states = "adadelta", ("square_avg", "acc_delta")
    _formula = staticmethod(rules.adadelta)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, checked(locals(), "lr rho eps weight_decay maximize capturable"))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        sign = -1.0 if group["maximize"] else 1.0
        return *(group[name] for name in ("lr", "rho", "eps", "weight_decay")), sign


adadelta = on_lists(
    Adadelta,
    "square_avgs acc_deltas state_steps",
    "capturable foreach differentiable has_complex",
    "lr rho eps weight_decay maximize",
)
