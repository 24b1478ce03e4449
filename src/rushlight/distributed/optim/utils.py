"""``torch.distributed.optim.utils``: optimizers that are given gradients, by the classes of those that find them at parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import optim
from rushlight.tensor import Tensor

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]


class _Functional:
    """An optimizer whose steps are given gradients.

    params: what `step` changes, in its order; `step_param` takes any parameter, whose state is made with its first step.
    Other arguments are those of the optimizer.  Raises ValueError where there are no parameters, unless
    `_allow_empty_param_group`.
    """

    kind: type[optim.Optimizer]

    def __init__(
        self, params: Sequence[Tensor], *args: Any, _allow_empty_param_group: bool = False, **options: Any
    ) -> None:
        if not params and not _allow_empty_param_group:
            raise ValueError("optimizer got an empty parameter list")
        self.param_group = {"params": list(params)}
        self._given = args, options
        self._steps: dict[Tensor, optim.Optimizer] = {}

    @property
    def state(self) -> dict[Tensor, Any]:
        """What is kept for each parameter that was stepped."""
        return {param: made.state[param] for param, made in self._steps.items()}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Step one parameter by a gradient; its own `.grad` stays as it is."""
        if param not in self._steps:
            args, options = self._given
            self._steps[param] = self.kind([param], *args, **options)
        former, param.grad = param.grad, grad
        try:
            self._steps[param].step()
        finally:
            param.grad = former

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Step all parameters; a None leaves one out.  Raises ValueError for another number of gradients."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                f"step: the number of gradients, {len(gradients)}, does not equal that of the parameters, {len(params)}: "
                "give None where there is none"
            )
        for param, grad in zip(params, gradients, strict=True):
            if grad is not None:
                self.step_param(param, grad)


functional_optim_map: dict[Any, Any] = {
    kind: type(f"_Functional{kind.__name__}", (_Functional,), {"kind": kind, "__module__": __name__})
    for kind in (
        optim.Adagrad,
        optim.Adam,
        optim.AdamW,
        optim.SGD,
        optim.Adadelta,
        optim.RMSprop,
        optim.Rprop,
        optim.Adamax,
    )
}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Have `optim` stand for `key`, unless something does already."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: type[Any], *args: Any, **kwargs: Any) -> Any:
    """An optimizer of that class that is given gradients.  Raises ValueError where the class has none."""
    found = functional_optim_map.get(optim_cls)
    if found is None:
        known = ", ".join(kind.__name__ for kind in functional_optim_map)
        raise ValueError(f"as_functional_optim: {optim_cls} has no functional counterpart; these have one: {known}")
    return found([], *args, **kwargs, _allow_empty_param_group=True)
