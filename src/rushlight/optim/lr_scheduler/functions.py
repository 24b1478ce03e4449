"""Schedules that call functions of the user."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from rushlight.optim.lr_scheduler.base import LRScheduler
from rushlight.optim.optimizer import Optimizer


class _ByFunction(LRScheduler):
    """Rates by one function of the epoch for all groups, or by one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; functions are left out, of callable objects the attributes are kept."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict()` was called."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if kept is not None:
                function.__dict__.update(kept)


class LambdaLR(_ByFunction):
    """The initial rate times a function of the epoch.

    Args:
        optimizer: the optimizer whose groups are changed.
        lr_lambda: a function from epoch to factor, or a list with one for each group.
        last_epoch: the epoch to go on from.

    Example:
        >>> import rushlight as torch
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        """The rates of `last_epoch`."""
        self._current()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunction):
    """The rate before times a function of the epoch.  Arguments are those of `LambdaLR`."""

    def get_lr(self) -> list[Any]:
        """The rates of `last_epoch`."""
        rates = self._current()
        if self._is_initial:
            return rates
        return [lr * f(self.last_epoch) for lr, f in zip(rates, self.lr_lambdas, strict=True)]
