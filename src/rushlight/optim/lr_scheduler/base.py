"""The base of all schedules."""

from __future__ import annotations

import functools
import weakref
from types import TracebackType
from typing import Any, Self

from rushlight.basics.caller import warn
from rushlight.basics.signatures import name_init
from rushlight.basics.state import Setting
from rushlight.optim.optimizer import Optimizer
from rushlight.tensor import Tensor

OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
    "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
WRONG_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
    "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the first value of "
    "the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


class _enable_get_lr_call:
    """A context in which a schedule's own `step` asks `get_lr` for rates, which is not warned of."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> Self:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.o._get_lr_called_within_step = False


def copied(value: float) -> float:
    """An option, of a tensor a copy of its own."""
    if isinstance(value, Tensor):
        with Setting("grad", False):
            return value.detach().clone()
    return value


def set_option(group: dict[str, Any], name: str, value: Tensor | complex) -> None:
    """Set an option of a group; one that is a tensor is written into."""
    if isinstance(group[name], Tensor):
        with Setting("grad", False):
            group[name].fill_(value)
    else:
        group[name] = value


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group: copies of `value`, or its elements if it is a list or tuple of the right length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return [copied(v) for v in value]


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise TypeError unless it is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _note_steps(optimizer: Any) -> None:
    """Have the optimizer's `step` note that it was called."""
    former = optimizer.step
    if hasattr(former, "_wrapped_by_lr_sched"):
        return
    function, owner = getattr(former, "__func__", None), weakref.ref(optimizer)

    @functools.wraps(former)
    def step(*args: object, **kwargs: object) -> Any:
        self: Any = owner()
        self._opt_called = True
        return former(*args, **kwargs) if function is None else function(self, *args, **kwargs)

    if function is not None:
        del former, step.__wrapped__  # they refer to the optimizer, which will hold this function
    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


class LRScheduler:
    """A schedule: subclasses define `get_lr`, and `_get_closed_form_lr` if the rate follows from the epoch alone.

    Args:
        optimizer: the optimizer whose groups are changed.
        last_epoch: the epoch to go on from; groups must then have "initial_lr".  -1 starts anew.
    """

    optimizer: Optimizer
    _get_lr_called_within_step: bool

    def __init_subclass__(cls, **options: object) -> None:
        """Have errors about arguments name the class."""
        super().__init_subclass__(**options)
        name_init(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state before, or start with last_epoch=-1"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, or one from a pickle, with an optimizer of its own."""
        self.__dict__.update(state)
        _note_steps(self.optimizer)

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """What the schedule knows, without its optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict()` was called."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of `last_epoch`, from those before it.  Subclasses define it; `step` calls it."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set its rates.  epoch: deprecated; go to this one."""
        if self._step_count == 1 and self.last_epoch >= 0:  # -1: a schedule of schedules starts it again
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING, UserWarning)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(OVERRIDDEN, UserWarning)
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(WRONG_ORDER, UserWarning)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        self._set_lr(values)

    def _set_lr(self, values: list[Any]) -> None:
        groups = self.optimizer.param_groups
        if len(values) != len(groups):
            raise ValueError(f"{type(self).__name__}: {len(values)} learning rates for {len(groups)} parameter groups: make the "
                             "schedule anew after add_param_group()")  # fmt: skip
        for group, lr in zip(groups, values, strict=True):
            set_option(group, "lr", lr)
        self._last_lr: list[Any] = [copied(group["lr"]) for group in groups]

    def _current(self) -> list[Any]:
        """The rates that the groups have; warns when the user calls `get_lr` for them."""
        if not self._get_lr_called_within_step:
            message = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
            warn(message, UserWarning)
        return [copied(group["lr"]) for group in self.optimizer.param_groups]
