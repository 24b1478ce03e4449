"""The loss scaler: gradients of 16-bit results are kept from becoming 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.amp.casting import usable
from rushlight.basics import dtypes, events
from rushlight.basics.state import special
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer

_STATE = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")


class GradScaler:
    """Multiplies losses, divides gradients by the same number, and leaves out steps with gradients that are not finite.

    Such a step lowers the scale by `backoff_factor`; `growth_interval` good ones in a row raise it by `growth_factor`
    (Micikevicius et al., "Mixed Precision Training", 2018).  For ``device="cpu"``; for CUDA, which is not here, it warns and does
    nothing.

    >>> import rushlight as torch
    >>> p = torch.nn.Parameter(torch.ones(2))
    >>> opt = torch.optim.SGD([p], lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(p.sum()).backward()
    >>> p.grad
    tensor([8., 8.])
    >>> scaler.step(opt)
    >>> scaler.update()
    >>> p.data, scaler.get_scale()
    (tensor([0.5000, 0.5000]), 8.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._asked_for, self._enabled = enabled, usable("GradScaler", device, enabled)
        if self._enabled and growth_factor <= 1.0:
            raise ValueError(f"GradScaler: growth_factor must be above 1, got {growth_factor}")
        if self._enabled and backoff_factor >= 1.0:
            raise ValueError(f"GradScaler: backoff_factor must be below 1, got {backoff_factor}")
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        # By optimizer: whether its gradients, divided since the last update, are not finite; None where there were none.
        self._infinite: dict[int, bool | None] = {}
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor of losses; 1 where it is switched off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `growth_interval` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Changes the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step with infinite gradients."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Changes the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps in a row before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Changes the growth interval."""
        self._growth_interval = new_interval

    def scale(self, outputs: object) -> Any:
        """`outputs`, a tensor or an iterable of some, times the scale; as they are where it is switched off."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes)):
            found = map(self.scale, outputs)
            return type(outputs)(found) if isinstance(outputs, (list, tuple)) else found
        raise ValueError(f"GradScaler.scale: expected a Tensor or an iterable of Tensors, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, for who clips or looks at them before the step.

        Raises RuntimeError if that was done since the last `update`, and ValueError for float16 gradients.
        """
        self._check(optimizer)
        if not self._enabled:
            return
        if id(optimizer) in self._infinite:
            done = "step" if id(optimizer) in self._stepped else "unscale_"
            raise RuntimeError(
                f"GradScaler.unscale_: {done}() has already been called on this optimizer since the last update()"
            )
        if special.observing:
            events.treated("GradScaler")
        found = [
            self._divide(p.grad) for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]  # all of them: any() of a generator would leave those after the first infinite one as they are
        self._infinite[id(optimizer)] = any(found) if found else None

    def _divide(self, grad: Tensor) -> bool:
        """Divides one gradient; whether it is not finite."""
        if grad.dtype is dtypes.float16:
            raise ValueError("GradScaler.unscale_: expected float32 gradients, got float16: keep the parameters in float32 "
                             "and let autocast convert them")  # fmt: skip
        with no_grad():
            grad.mul_(1.0 / self._scale)
        with np.errstate(all="ignore"):
            found: Any = grad  # sparse ones have values
            values = (found.coalesce().values() if getattr(found, "is_sparse", False) else found).detach()
            return not bool(values.isfinite().all().item())

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, left out where a gradient is not finite.

        Raises RuntimeError for a second step since the last `update`, for closures, and for optimizers that step in backward;
        AssertionError where no parameter has a gradient.
        """
        self._check(optimizer)
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise RuntimeError(
                "GradScaler.step: closures are not supported: they compute gradients that nobody divides"
            )
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler.step: step() has already been called since the last update()")
        if id(optimizer) not in self._infinite:
            self.unscale_(optimizer)
        if self._infinite[id(optimizer)] is None:
            raise AssertionError(
                f"GradScaler.step: no parameter of this {type(optimizer).__name__} has a gradient: call backward() on a "
                "scaled loss that they had part in, or leave out this optimizer's step"
            )
        self._stepped.add(id(optimizer))
        return None if self._infinite[id(optimizer)] else optimizer.step(**kwargs)

    def _check(self, optimizer: Optimizer) -> None:
        """Raises RuntimeError for an optimizer that steps inside backward, unless ``enabled=False`` was passed."""
        if self._asked_for and getattr(optimizer, "_in_backward", None) is not None:
            raise RuntimeError(
                f"GradScaler: this {type(optimizer).__name__} steps inside backward (optim.in_backward), and loss scaling has "
                "to see all gradients before any parameter is stepped: it looks for infinite ones, divides by the scale, and "
                "may skip the step. Train in float32 or bfloat16 and pass enabled=False, or step after backward."
            )

    def update(self, new_scale: Tensor | float | None = None) -> None:
        """Raises or lowers the scale after the steps of an iteration, or gives it a value.

        Raises RuntimeError where no gradients were looked at since the last one.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif all(infinite is None for infinite in self._infinite.values()):
            raise RuntimeError(
                "GradScaler.update: no optimizer's step() or unscale_() was called since the last update() with a gradient"
            )
        elif any(self._infinite.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._infinite.clear()
        self._stepped.clear()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps, with PyTorch's keys; empty where it is switched off."""
        return {key: getattr(self, "_" + key.lstrip("_")) for key in _STATE} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what `state_dict` gave.  Raises RuntimeError for an empty one, of a scaler that was switched off."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: the state is empty: it comes from a scaler that was switched off"
            )
        for key in _STATE:
            setattr(self, "_" + key.lstrip("_"), state_dict[key])
