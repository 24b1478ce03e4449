"""``torch.cuda.nvtx``: marks for NVIDIA's profiler, which is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.absent import devices as no_device

__all__ = ["range"]

no_device.needs(globals(), "cuda.nvtx", "mark range_end range_pop range_push range_start", RuntimeError)


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A context or decorator that raises RuntimeError when it is entered, not when it is made."""
    globals()["range_push"](msg)
    yield
