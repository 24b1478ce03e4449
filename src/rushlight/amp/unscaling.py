"""The two steps of a scaler on tensors, for scalers that libraries write after PyTorch's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.basics import dtypes
from rushlight.engine.modes import no_grad
from rushlight.tensor import Tensor

__all__: list[str] = []


def _one(x: Tensor, name: str) -> None:
    if x.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if x.dtype is not dtypes.float32:
        raise RuntimeError(f"{name} must be a float tensor.")


def _amp_foreach_non_finite_check_and_unscale_(self: Iterable[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Gradients times `inv_scale`, in place; `found_inf` becomes 1 where one of them has a number that is not finite.

    (*) each, (1), (1).  Raises RuntimeError for other shapes and dtypes than one float32 number.
    """
    _one(inv_scale, "inv_scale")
    _one(found_inf, "found_inf")
    with no_grad():
        for grad in self:
            if not bool(grad.isfinite().all()):
                found_inf.fill_(1.0)
            grad.mul_(inv_scale)


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Any:
    """The scale after a step, in place: smaller where `found_inf` is not 0, larger after `growth_interval` steps without.

    (1), (1) of int32 that counts those steps, (1) -> (1).  A scale that would not be finite stays.  Raises RuntimeError for other
    shapes and dtypes.
    """
    if growth_tracker.numel() != 1:
        raise RuntimeError("growth_tracker must be a 1-element tensor.")
    if growth_tracker.dtype is not dtypes.int32:
        raise RuntimeError("growth_tracker must be an int tensor.")
    _one(self, "current_scale")
    _one(found_inf, "found_inf")
    with no_grad():
        if found_inf.item():
            self.mul_(scale_backoff_factor)
            growth_tracker.zero_()
        elif growth_tracker.item() + 1 < growth_interval:
            growth_tracker.add_(1)
        else:
            grown = self * scale_growth_factor
            self.copy_(grown if bool(grown.isfinite().all()) else self)
            growth_tracker.zero_()
    return self
