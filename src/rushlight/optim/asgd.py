"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from rushlight.kernels.reference import rules
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, advance, scalar
from rushlight.tensor import Tensor

__all__ = ["ASGD", "asgd"]


class ASGD(Stepper):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        lambd: how fast the rate and the parameters decay.
        alpha: the power with which the rate decays.
        t0: the step at which averaging starts.
        weight_decay: L2 penalty.
        foreach: accepted; every way of stepping is in place and gives the same numbers.
        maximize: step along the gradient instead of against it.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.
        capturable: for graph capture on a GPU; refused on the CPU.

    State of a parameter: step, eta (the rate of the next step), mu (the weight of the next average), ax (the average).
    """

    _kernel, _states = "asgd", ("ax",)
    _formula = staticmethod(rules.asgd)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, checked(locals()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p) or {}
                for name in ("eta", "mu"):
                    if name in kept and not isinstance(kept[name], Tensor):
                        kept[name] = scalar(kept[name])

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        state.update(step=scalar(0.0), eta=scalar(number(group["lr"])), mu=scalar(1.0))
        super()._start(state, p, group)

    def _options(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(group[name] for name in ("lr", "lambd", "alpha", "t0", "weight_decay", "maximize"))

    def _row(self, state: dict[str, Any], options: Any) -> tuple[Any, ...]:
        lr, lambd, alpha, t0, decay, maximize = options
        kept_eta, kept_mu = state["eta"]._array, state["mu"]._array
        eta, mu, rate, step = float(kept_eta), float(kept_mu), number(lr), advance(state)
        kept_eta[...] = rate / (1 + lambd * rate * step) ** alpha
        kept_mu[...] = 1 / max(1, step - t0)
        return eta, mu, 1 - lambd * eta, decay, -1.0 if maximize else 1.0


asgd = on_lists(
    ASGD,
    "axs mus etas state_steps",
    "foreach maximize differentiable capturable has_complex",
    "lambd lr t0 alpha weight_decay",
)
