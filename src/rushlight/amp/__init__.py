"""Mixed precision where there is no GPU: scripts that switch it off, or ask for CUDA's, run in full precision.

As in PyTorch without CUDA, ``autocast("cuda")`` and ``GradScaler("cuda")`` warn and do nothing.  Mixed precision on
the CPU is refused: rushlight does not have it.
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from rushlight import caller

__all__ = ["GradScaler", "autocast", "is_autocast_available"]

Function = TypeVar("Function", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Whether mixed precision can be had on devices of this kind: no."""
    return False


def _switched_off(name: str, device_type: str, enabled: bool) -> None:
    """Checks that there is nothing to do; warns where CUDA was asked for, as PyTorch does without it.

    Raises NotImplementedError for mixed precision on the CPU, RuntimeError for an unknown kind of device.
    """
    if device_type not in ("cpu", "cuda"):
        raise RuntimeError(f"{name}: expected device_type 'cpu' or 'cuda', got {device_type!r}")
    if not enabled:
        return
    if device_type == "cpu":
        raise NotImplementedError(f"{name}: mixed precision on the CPU is not implemented: pass enabled=False")
    caller.warn(f"{name}: CUDA is not available, disabling")


class autocast:
    """A context or decorator that leaves everything in the precision it has.

    >>> import rushlight as torch
    >>> with torch.autocast("cpu", enabled=False):
    ...     y = torch.ones(2) * 2
    >>> y.dtype
    torch.float32
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _switched_off("autocast", device_type, enabled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return None

    def __call__(self, function: Function) -> Function:
        """Decorates ``function`` without changing what it does."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]


class GradScaler:
    """The loss scaler, switched off: losses pass as they are and steps are the optimizer's."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _switched_off("GradScaler", device, enabled)
        self._asked_for = enabled

    def is_enabled(self) -> bool:
        """Whether losses are scaled: no."""
        return False

    def get_scale(self) -> float:
        """The factor of losses: 1."""
        return 1.0

    def scale(self, outputs: Any) -> Any:
        """``outputs`` as they are."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""
        self._check(optimizer)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step."""
        self._check(optimizer)
        return optimizer.step(*args, **kwargs)

    def _check(self, optimizer: Any) -> None:
        """Raises RuntimeError for an optimizer that steps inside backward, unless ``enabled=False`` was passed."""
        if self._asked_for and getattr(optimizer, "_in_backward", None) is not None:
            raise RuntimeError(
                f"GradScaler: this {type(optimizer).__name__} steps inside backward (optim.in_backward), and loss scaling has "
                "to see all gradients before any parameter is stepped: it looks for infinite ones, divides by the scale, and "
                "may skip the step. Train in float32 or bfloat16 and pass enabled=False, or step after backward."
            )

    def update(self, new_scale: Any = None) -> None:
        """There is no factor to change."""

    def state_dict(self) -> dict[str, Any]:
        """Empty, as PyTorch's is when it is switched off."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Accepts any state, and keeps none."""
