"""Communication hooks after which an optimizer steps: each bucket when it has arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.distributed.reducer import GradBucket, first
from rushlight.tensor import Tensor

__all__: list[str] = []


class _OptimizerHookState:
    """What steps, by ``step_param(param, grad)``.  params: which parameters, all if None.

    Raises ValueError for what has no such method.
    """

    def __init__(self, functional_optim: Any, params: list[Tensor] | None = None) -> None:
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        if params:
            self.params_to_optimize = set(params)

    def steps(self, param: Tensor) -> bool:
        """Whether a parameter is among those that are stepped."""
        return param in self.__dict__.get("params_to_optimize", (param,))


def _hook_then_optimizer(hook: Callable[[Any, GradBucket], Any], optimizer_state: _OptimizerHookState) -> Any:
    """A hook after which parameters are stepped with what it made of their gradients."""

    def stepping(state: object, bucket: GradBucket) -> Any:
        def step(future: Any) -> Tensor:
            buffer, found = bucket.buffer(), first(future.value())
            if found is not buffer:
                buffer.copy_(found)
            for param, grad in zip(bucket.parameters(), bucket.gradients(), strict=True):
                if optimizer_state.steps(param):
                    optimizer_state.functional_optimizer.step_param(param, grad)
            return buffer

        return hook(state, bucket).then(step)

    return stepping
