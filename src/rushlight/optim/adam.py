"""Adam and AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.dispatch import functions as ops
from rushlight.kernels.steps import adam_numbers
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, advance, decayed, moments
from rushlight.tensor import Tensor

__all__ = ["Adam", "AdamW", "adam", "adamw"]


class Adam(Stepper):
    """Adam (Kingma and Ba, 2014): steps scaled by running means of the gradient and of its square.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the running means of gradient and squared gradient is kept at each step.
        eps: added to the denominator.
        weight_decay: L2 penalty, or, decoupled, the part of the parameter taken off at each step (times `lr`).
        amsgrad: scale by the largest mean square seen (Reddi et al., 2018).
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        capturable: for graph capture on a GPU; refused on the CPU.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.
        decoupled_weight_decay: decay as AdamW does.

    State of a parameter: step, exp_avg, exp_avg_sq, and max_exp_avg_sq with `amsgrad`.

    Example:
        >>> import rushlight as torch
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
    """

    _fill: ClassVar[dict[str, Any]] = {"amsgrad": False}
    _kernel = "adam"
    _states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_tensors(lr, betas, bool(foreach and not capturable))
        super().__init__(params, checked(locals(), "lr betas eps weight_decay amsgrad maximize"))

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def _options(self, group: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        return (
            number(group["lr"]),
            number(beta1),
            number(beta2),
            number(group["eps"]),
            number(group["weight_decay"]),
            group["decoupled_weight_decay"],
            group["maximize"],
        )

    def _row(self, state: dict[str, Any], options: Any) -> tuple[float, ...]:
        return adam_numbers(advance(state), *options)

    def _step_handed(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, beta1, beta2, eps, decay, decoupled, maximize = self._options(group)
        step = advance(state)
        grad = -grad if maximize else grad
        if decay != 0 and decoupled:
            p.mul_(1 - lr * decay)
        elif decay != 0:
            grad = grad.add(p, alpha=decay)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(ops.maximum(state["max_exp_avg_sq"], square))
        denominator = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(eps)
        p.addcdiv_(mean, denominator, value=-lr / (1 - beta1**step))

    @staticmethod
    def _formula(
        xp: Any,
        param: Tensor,
        grad: Any,
        exp_avg: Any,
        exp_avg_sq: Any,
        largest: Any = None,
        *,
        step: float,
        lr: Any,
        betas: Any,
        eps: float,
        weight_decay: Any,
        maximize: bool,
        decoupled_weight_decay: bool,
    ) -> tuple[Any, ...]:
        beta1, beta2 = betas
        param, grad = decayed(param, grad, lr, weight_decay, maximize, decoupled_weight_decay)
        exp_avg, exp_avg_sq = moments(grad, exp_avg, exp_avg_sq, beta1, beta2)
        square = exp_avg_sq if largest is None else xp.maximum(largest, exp_avg_sq)
        denominator = xp.sqrt(square) / (1 - beta2**step) ** 0.5 + eps
        param = param - lr / (1 - beta1**step) * exp_avg / denominator
        return (param, exp_avg, exp_avg_sq) if largest is None else (param, exp_avg, exp_avg_sq, square)


class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, 2017): Adam with decoupled weight decay.

    Arguments and state are those of `Adam`; weight_decay is 0.01 unless given.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def _check_tensors(lr: Tensor | float, betas: Any, lists: bool) -> None:
    """Refuse learning rates and betas that are tensors where lists of parameters are stepped at once, or of several elements."""
    if isinstance(lr, Tensor) and lists:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    tensors = [isinstance(b, Tensor) for b in betas]
    if any(tensors) and not all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if tensors[i] and lists:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if tensors[i] and beta._array.size != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


adam = on_lists(
    Adam,
    "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach capturable differentiable fused grad_scale found_inf has_complex decoupled_weight_decay",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)

adamw = on_lists(
    AdamW,
    "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach capturable differentiable fused grad_scale found_inf has_complex",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
