"""Cyclical rates (Smith, Cyclical Learning Rates for Training Neural Networks, 2015)."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from rushlight.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_groups, set_option
from rushlight.optim.lr_scheduler.momentum import set_momentum, uses_beta1
from rushlight.optim.optimizer import Optimizer

MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """The rate goes up and down between base_lr and max_lr; call `step` after every batch.

    Args:
        optimizer: the optimizer whose groups are changed.
        base_lr, max_lr: bounds, or lists with one for each group.
        step_size_up, step_size_down: batches on the way up and down (None: as many as up).
        mode: "triangular", "triangular2" (half the height after each cycle), "exp_range" (gamma ** batch).
        gamma: for "exp_range".
        scale_fn: a function of cycle or batch that scales the height, in place of `mode`.
        scale_mode: what scale_fn is given: "cycle" or "iterations".
        cycle_momentum: momentum moves from max_momentum to base_momentum as the rate rises.
        last_epoch: the batch to go on from.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        down = float(step_size_up) if step_size_down is None else float(step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom, self.scale_mode = mode, gamma, scale_fn, scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _prepare_momentum(self, base_momentum: object, max_momentum: object, last_epoch: int) -> None:
        self.use_beta1 = uses_beta1(self.optimizer)
        self.base_momentums = for_groups("base_momentum", self.optimizer, base_momentum)
        self.max_momentums = for_groups("max_momentum", self.optimizer, max_momentum)
        if last_epoch == -1:
            groups = zip(self.optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True)
            for group, high, low in groups:
                set_momentum(group, high, self.use_beta1)
                group["max_momentum"], group["base_momentum"] = high, low

    def scale_fn(self, x: Any) -> Any:
        """The height of a cycle, by its number or that of the batch, as a part of the full one."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """The rates of batch `last_epoch`; moves the momentum too."""
        self._current()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in groups:
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; a function scale_fn is left out, of a callable object the attributes are kept."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict()` was called."""
        kept = state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if kept is not None:
            self._scale_fn_custom.__dict__.update(kept)
