"""The state of the default random number generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rushlight.generator import Generator as Generator
from rushlight.generator import default_generator
from rushlight.ops.random.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
           "thread_safe_generator"]  # fmt: skip


@contextlib.contextmanager
def fork_rng(devices: object = None, enabled: bool = True, *_: object, **__: object) -> Iterator[None]:
    """Restore the default generator's state at the end of a block, whatever is drawn within.

    >>> import rushlight as torch
    >>> with torch.random.fork_rng():
    ...     a = torch.rand(1)
    >>> torch.equal(a, torch.rand(1))
    True
    """
    if not enabled:
        yield
        return
    words = default_generator.state_words()
    try:
        yield
    finally:
        default_generator.set_state_words(words)


def thread_safe_generator() -> None:
    """None, which stands for the default generator: workers of a DataLoader are processes, never threads."""
