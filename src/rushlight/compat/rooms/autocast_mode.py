"""``torch.amp.autocast_mode``: where PyTorch keeps autocast."""

import functools
from collections.abc import Callable
from typing import Any

from rushlight.amp import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs `func` in a context, which is entered anew at each call."""

    @functools.wraps(func)
    def within(*args: object, **kwargs: object) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return within
