"""What libraries ask of `torch._dynamo.utils`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight.basics import caller

__all__ = ["LazyString", "clone_input", "counters", "disable_cache_limit", "is_compile_supported", "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of what was compiled: nothing


class LazyString:
    """A text that is made when it is asked for.  func: what makes it, of the other arguments."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """A copy of a tensor, a leaf where it is one, with a copy of its gradient."""
    found = x.detach().clone() if dtype is None else x.detach().to(dtype, copy=True)
    found.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        found.grad = clone_input(x.grad, dtype=dtype)
    return found


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` takes programs for a device: for the CPU, and runs them as they are."""
    return device_type == "cpu"


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of `msg` the first time that it is said, at the user's line whatever `stacklevel` says."""
    caller.warn_once(msg)


def disable_cache_limit() -> AbstractContextManager[None]:
    """A ``with`` in which any number of compiled programs is kept: there are none."""
    return nullcontext()
