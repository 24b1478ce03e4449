"""``torch._functorch.utils``: decorators, and settings of how autograd's functions work within transformations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["enable_single_level_autograd_function", "exposed_in"]


@contextlib.contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """A context in which `autograd.Function` works on one level of transformations: it does so anyhow."""
    yield


def exposed_in(module: str) -> Callable[[Any], Any]:
    """A decorator of functions that say another module of themselves."""

    def wrapper(fn: Any) -> Any:
        fn.__module__ = module
        return fn

    return wrapper
