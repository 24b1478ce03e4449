"""Lion."""

from __future__ import annotations

from typing import Any

from rushlight import kernels
from rushlight.basics.dtypes import is_complex
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.stepper import Stepper, zeros
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor

__all__ = ["Lion"]


class Lion(Stepper):
    """Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, arXiv:2302.06675, algorithm 2).

    A step is the sign of a mean of gradients, times `lr`: there is one state where Adam has two.  Rates are usually a third
    to a tenth of Adam's, and weight decay as much larger.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the mean counts for the step, and how much of it is kept.
        weight_decay: the part of the parameter taken off at each step, times `lr`.
        maximize: step along the gradient instead of against it.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.

    State of a parameter: exp_avg.  Raises ValueError for options out of range, RuntimeError for complex parameters.

    Example:
        >>> import rushlight as torch
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Lion([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.5000, -1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, checked(locals()))

    def _work(self, array: Any, group: dict[str, Any]) -> int:
        return super()._work(array, group) if array.itemsize == 2 else 0

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        if is_complex(p._array.dtype):
            raise RuntimeError("Lion does not support complex parameters: a complex number has no sign")
        state["exp_avg"] = zeros(p)

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: Any) -> None:
        mean = state["exp_avg"]
        names = (group["lr"], *group["betas"], group["weight_decay"])
        numbers: tuple[Any, ...] = (*(number(x) for x in names), group["maximize"])
        kernels.lion(p._array, grad._array, mean._array, *numbers)
        bump(p, STEP)
        bump(mean, STEP)
