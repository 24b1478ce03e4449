"""RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, lerp, regularized
from rushlight.tensor import Tensor

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Stepper):
    """RMSprop (Hinton, lecture 6 of "Neural Networks for Machine Learning"): steps scaled by the running mean square.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        alpha: how much of the running mean square is kept at each step.
        eps: added to the denominator.
        weight_decay: L2 penalty.
        momentum: how much of the former step is kept.
        centered: scale by the running variance instead of the mean square (Graves, 2013).
        capturable: for graph capture on a GPU; refused on the CPU.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: step, square_avg, and momentum_buffer and grad_avg where they are used.
    """

    _fill: ClassVar[dict[str, Any]] = {"momentum": 0, "centered": False}
    _kernel = "rmsprop"
    _states = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(alpha >= 0.0, "Invalid alpha value: {}", alpha)
        super().__init__(params, checked(locals(), "lr momentum alpha eps centered"))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        moving = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *moving, *(("grad_avg",) if group["centered"] else ()))

    def _options(self, group: dict[str, Any]) -> tuple[float, ...]:
        names = ("lr", "alpha", "eps", "weight_decay", "momentum")
        return (*(number(group[name]) for name in names), -1.0 if group["maximize"] else 1.0)

    @staticmethod
    def _formula(
        xp: Any,
        param: Tensor,
        grad: Any,
        square: Any,
        *rest: Any,
        lr: object,
        alpha: float,
        eps: float,
        weight_decay: Any,
        momentum: float,
        centered: bool,
        maximize: bool,
    ) -> tuple[Any, ...]:
        grad = regularized(param, grad, weight_decay, maximize)
        square = alpha * square + (1 - alpha) * grad * grad
        kept: list[Any] = [square]
        variance = square
        if centered:
            mean = lerp(rest[-1], grad, 1 - alpha)
            variance = square - mean * mean
        change = grad / (xp.sqrt(variance) + eps)
        if momentum > 0:
            change = momentum * rest[0] + change
            kept.append(change)
        return param - lr * change, *kept, *([mean] if centered else [])


rmsprop = on_lists(
    RMSprop,
    "square_avgs grad_avgs momentum_buffer_list state_steps",
    "foreach maximize differentiable capturable has_complex",
    "lr alpha eps weight_decay momentum centered",
)
