"""An optimizer of each process, and parameters that are averaged over processes from time to time (Lin et al., ICLR 2020)."""

from __future__ import annotations

from typing import Any

from rushlight.basics import caller
from rushlight.distributed.algorithms.model_averaging.averagers import ModelAverager
from rushlight.optim.optimizer import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps as `optim` does, and lets `averager` average the parameters after that.

    For models whose gradients `post_localSGD_hook` averages over all processes in the first steps, as many as the averager's
    `warmup_steps`.
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:
        """That of the optimizer."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """That of the optimizer, with the averager's count as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; warns where that has no "step", which is 0 then."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            caller.warn(
                "PostLocalSGDOptimizer: Loaded state dict does not contain a step counter for an averager: it begins at 0",
                UserWarning,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """Step, and average where it is time to."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As the optimizer's."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the optimizer's."""
        self.optim.add_param_group(param_group)
