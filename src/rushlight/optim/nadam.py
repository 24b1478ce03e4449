"""NAdam."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, advance, penalties, scalar
from rushlight.tensor import Tensor

__all__ = ["NAdam", "nadam"]


class NAdam(Stepper):
    """NAdam (Dozat, 2016): Adam with Nesterov's momentum.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the running means of gradient and squared gradient is kept at each step.
        eps: added to the denominator.
        weight_decay: L2 penalty, or, decoupled, the part of the parameter taken off at each step (times `lr`).
        momentum_decay: how fast the momentum nears betas[0].
        decoupled_weight_decay: decay as AdamW does.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        capturable: for graph capture on a GPU; refused on the CPU.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: step, mu_product (of all momenta so far), exp_avg, exp_avg_sq.
    """

    _kernel, _states = "nadam", ("exp_avg", "exp_avg_sq")
    _formula = staticmethod(rules.nadam)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params, checked(locals(), "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize")
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p)
                if kept and not isinstance(kept.get("mu_product"), Tensor | None):
                    kept["mu_product"] = scalar(kept["mu_product"])

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state.update(step=scalar(0.0), mu_product=scalar(1.0))
        super()._start(state, p, group)

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        names = ("lr", "momentum_decay", "eps", "weight_decay", "decoupled_weight_decay", "maximize")
        return *group["betas"], *(group[name] for name in names)

    def _row(self, state: dict[str, Any], options: Any) -> tuple[Any, ...]:
        beta1, beta2, lr, decay, eps, penalty, decoupled, maximize = options
        step = advance(state)
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
        product = multiplied(state["mu_product"], mu)
        of_grad, of_mean = lr * ((1.0 - mu) / (1.0 - product)), lr * (mu_next / (1.0 - product * mu_next))
        return (of_grad, of_mean, beta1, beta2, 1 - beta2**step, eps, *penalties(lr, penalty, decoupled),
                -1.0 if maximize else 1.0)  # fmt: skip


def multiplied(product: Tensor, mu: float) -> Tensor | float:
    """The product of all momenta, multiplied in place by this step's: a tensor where it is differentiated."""
    if product.requires_grad or isinstance(mu, Tensor):
        return product.mul_(mu)
    array = product._array
    array *= mu
    return float(array)


nadam = on_lists(
    NAdam,
    "exp_avgs exp_avg_sqs mu_products state_steps",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)
