"""Averages of a model's parameters over training: stochastic weight averaging and exponential moving averages.

Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight import nn
from rushlight.engine.modes import no_grad
from rushlight.kernels.reference.optim import blocks
from rushlight.optim.lr_scheduler.base import LRScheduler, copied, for_groups
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.parts import _group_tensors_by_device_and_dtype  # noqa: F401  moving averages of others take it from here
from rushlight.optim.stepper import raw, wide
from rushlight.signs import to_hold
from rushlight.storage import bump, settle
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.devices import device
    from rushlight.nn.modules.module import Module

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _move(averages: list[Tensor], values: list[Tensor], weight: float) -> None:
    """Move averages towards values by the fraction `weight`, in place, in blocks."""
    for average, value in zip(averages, values, strict=True):
        if not (average.dtype.is_floating_point or average.dtype.is_complex):
            continue
        settle(average._array)
        for to, new in blocks(raw(average), raw(value)):
            to[...] = wide(to) + weight * (wide(new) - wide(to))
        bump(average)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that moves lists of averages: each becomes decay * average + (1 - decay) * value."""
    _check_decay(decay)

    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: object) -> None:
        _move(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that moves lists of averages to equal averages of all values so far."""

    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        _move(averaged_param_list, current_param_list, 1 / (int(num_averaged) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function of (average, value, count) that gives decay * average + (1 - decay) * value."""
    _check_decay(decay)

    def ema_update(ema_param: Any, current_param: Any, num_averaged: object) -> Any:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function of (average, value, count) that gives the equal average of all values so far."""

    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages of the model's.

    Args:
        model: the model; it is copied.
        device: where the averages are kept.
        avg_fn: a function of (average, value, count) that gives the new average of one parameter.
        multi_avg_fn: a function of (averages, values, count) that changes lists of averages in place.
        use_buffers: average floating-point buffers too; else they are copied from the model at each update.

    Without a function the averages are equal ones.  `n_averaged`, a buffer, counts the updates.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: nn.Module,
        device: device | str | int | None = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", wrap(np.array(0, np.int64)))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model: nn.Module) -> None:
        """Take the parameters of `model` into the averages."""
        with no_grad():
            self._update(model)

    def _update(self, model: nn.Module) -> None:
        averages: list[Any] = self._averaged(self.module)
        values: list[Any] = self._averaged(model)
        count = int(self.n_averaged._array)
        if count == 0:
            _copy(averages, values)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average.detach(), value.detach(), self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
        if not self.use_buffers:
            _copy(list(self.module.buffers()), list(model.buffers()))
        self.n_averaged._array += 1
        bump(self.n_averaged)


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        settle(target._held)
        try:
            target._held[...] = to_hold(target, source._array)
        except ValueError as error:
            raise RuntimeError(
                f"update_parameters: expected a model with the sizes of the averaged one, got {list(source.shape)} for "
                f"{list(target.shape)}"
            ) from error
        bump(target)


def update_bn(loader: Iterable[Any], model: nn.Module, device: device | str | int | None = None) -> None:
    """Compute the running statistics of a model's batch norms anew, over the data of `loader`.

    loader: batches, or lists and tuples whose first element is one.  The model is in training mode meanwhile; it
    does nothing for models without batch norms.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    for norm in norms:
        norm.reset_running_stats()
    model.train()
    try:
        for norm in norms:
            norm.momentum = None  # equal averages
        with no_grad():
            for batch in loader:
                first = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(first if device is None else first.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to swa_lr within anneal_epochs epochs and stays there.

    Args:
        optimizer: the optimizer whose groups are changed.
        swa_lr: the rate to go to, or a list with one for each group.
        anneal_epochs: how many epochs that takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: the epoch to go on from.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, epoch: float) -> float:
        """How far the rate has gone at an epoch."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """The rates of `last_epoch`, from those before it."""
        self._current()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            end, lr = group["swa_lr"], copied(group["lr"])
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
