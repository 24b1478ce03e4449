"""Rprop."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, raw
from rushlight.tensor import Tensor

__all__ = ["Rprop", "rprop"]


class Rprop(Stepper):
    """Resilient backpropagation (Riedmiller and Braun, 1993): a step size for every element, grown or cut by signs.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: where the step sizes start.
        etas: what a step size is multiplied by when the gradient changed its sign, and when it kept it.
        step_sizes: the smallest and the largest step size.
        capturable: for graph capture on a GPU; refused on the CPU.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: step, prev (its last gradient), step_size.
    """

    _kernel, _states = "rprop", ("prev", "step_size")
    _formula = staticmethod(rules.rprop)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, checked(locals(), "lr etas step_sizes foreach maximize differentiable"))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        super()._start(state, p, group)
        raw(state["step_size"])[...] = number(group["lr"])

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return *group["etas"], *group["step_sizes"], -1.0 if group["maximize"] else 1.0


rprop = on_lists(
    Rprop,
    "prevs step_sizes state_steps",
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)
