"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.kernels.steps import sgd_numbers
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import checked, number
from rushlight.optim.parts import on_lists
from rushlight.optim.stepper import Stepper, Together, refuse_complex, regularized, zeros
from rushlight.tensor import Tensor

__all__ = ["SGD", "sgd"]


class SGD(Stepper):
    """Stochastic gradient descent, with momentum if asked for.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        momentum: how much of the former step is kept.
        dampening: how much of the gradient is left out of the momentum.
        weight_decay: L2 penalty.
        nesterov: look ahead along the momentum; needs momentum and no dampening.
        maximize: step along the gradient instead of against it.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.
        differentiable: record the step, so that it can be differentiated; parameters must not be leaves.

    State of a parameter: momentum_buffer with `momentum`, else nothing.
    """

    _fill: ClassVar[dict[str, Any]] = {"nesterov": False}
    _kernel = "sgd"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, checked(locals()))

    def _step_group(self, group: dict[str, Any]) -> None:
        if group.get("fused"):
            refuse_complex(group)
        if group["differentiable"]:
            self._step_differentiable(group)
            return
        momentum, options, states = group["momentum"], self._options(group), self.state
        numbers, together = sgd_numbers(*options), Together("sgd")
        of_first = (*numbers[:-1], 1.0)
        for p in group["params"]:
            grad = p._grad
            if grad is None:
                continue
            buffer, first = None, False
            if momentum != 0:
                state = states[p]
                buffer = state.get("momentum_buffer")
                first = buffer is None
                if first:
                    buffer = state["momentum_buffer"] = zeros(p)
            together.add(p, grad, [buffer], of_first if first else numbers)
        together.run()

    def _step_rows(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        lr, momentum = number(group["lr"]), group["momentum"]
        if number(group["weight_decay"]) != 0:
            raise RuntimeError(
                "SGD: weight_decay would be added to every row, and the gradient is sparse: expected weight_decay=0, got "
                f"{group['weight_decay']}; give the embedding sparse=False"
            )
        if momentum == 0:
            p.add_(grad, alpha=lr if group["maximize"] else -lr)
            return
        grad = -grad.coalesce() if group["maximize"] else grad.coalesce()
        state = self.state[p]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            state["momentum_buffer"] = buffer = grad.clone()
        else:
            buffer *= momentum
            buffer += grad * (1 - group["dampening"])
        grad = grad + buffer * momentum if group["nesterov"] else buffer
        p.add_(grad, alpha=-lr)

    def _step_handed(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, momentum, dampening, decay, nesterov, maximize = self._options(group)
        grad = -grad if maximize else grad
        grad = grad.add(p, alpha=decay) if decay != 0 else grad
        if momentum != 0:
            if state.pop("first", False):
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer = state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        p.add_(grad, alpha=-lr)

    def _options(self, group: dict[str, Any]) -> Any:
        return (
            number(group["lr"]),
            group["momentum"],
            group["dampening"],
            number(group["weight_decay"]),
            group["nesterov"],
            group["maximize"],
        )

    def _step_differentiable(self, group: dict[str, Any]) -> None:
        for p in group["params"]:
            if self.state.get(p, {}).get("momentum_buffer", p) is None:  # as old checkpoints have it
                del self.state[p]
        super()._step_differentiable({**group, "foreach": False})
        if group["momentum"] == 0:
            for p in group["params"]:
                if not self.state.get(p, True):
                    del self.state[p]

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        if group["momentum"] != 0:
            state["momentum_buffer"] = None if p._dispatched else zeros(p)
            state["first"] = True

    def _numbers(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        names = ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")
        return {"first": state.pop("first", False), **{name: group[name] for name in names}}

    @staticmethod
    def _formula(
        xp: object,
        param: Tensor,
        grad: Any,
        buffer: Any = None,
        *,
        first: bool,
        lr: Any,
        momentum: float,
        dampening: float,
        weight_decay: Any,
        nesterov: bool,
        maximize: bool,
    ) -> tuple[Any, ...]:
        grad = regularized(param, grad, weight_decay, maximize)
        if buffer is None:
            return (param - lr * grad,)
        buffer = grad if first else momentum * buffer + (1 - dampening) * grad
        return param - lr * (grad + momentum * buffer if nesterov else buffer), buffer


sgd = on_lists(
    SGD,
    "momentum_buffer_list",
    "has_sparse_grad foreach fused grad_scale found_inf",
    "weight_decay momentum lr dampening nesterov maximize",
    grads="d_p_list",
)
