"""``torch.testing._utils``: functions that draw the same numbers each time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.random import get_rng_state, manual_seed, set_rng_state

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A context after which the random numbers go on as if nothing had been drawn in it."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `op` gives after `manual_seed(42)`; the random numbers go on as before."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
