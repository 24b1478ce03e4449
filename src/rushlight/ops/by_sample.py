"""Composed functions that look at values: inside vmap, where values differ from sample to sample, they run on each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.state import modes, special

F = TypeVar("F", bound=Callable[..., Any])


def per_sample(fn: F) -> F:
    """Decorate a function that looks at values; outside of vmap nothing changes."""

    @functools.wraps(fn)
    def outer(*args: Any, **kwargs: Any) -> Any:
        if not special.count or not modes.levels:
            return fn(*args, **kwargs)
        from rushlight.ops.batching.samples import attempt

        return attempt(fn, outer, args, kwargs)

    return outer  # type: ignore[return-value]
