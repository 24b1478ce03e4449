"""``torch.cuda.profiler``: tells a profiler outside of this process when to collect.  Without CUDA there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rushlight.basics import devices


def init(output_file: str, flags: object = None, output_mode: str = "key_value") -> None:
    """Refused with RuntimeError where there is no CUDA device."""
    _needs_device("init")


def start() -> None:
    """Start to collect; refused with RuntimeError where there is no CUDA device."""
    _needs_device("start")


def stop() -> None:
    """Stop collecting; refused with RuntimeError where there is no CUDA device."""
    _needs_device("stop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Collect within a block; refused with RuntimeError where there is no CUDA device.

    Under ``rushlight run``, where CUDA devices mean the CPU, the block runs and nothing is collected.
    """
    start()
    try:
        yield
    finally:
        stop()


def _needs_device(name: str) -> None:
    if devices.instead_of_cuda is None:
        raise RuntimeError(f"torch.cuda.profiler.{name}: there is no CUDA device; torch.autograd.profiler.profile() "
                           "profiles the CPU")  # fmt: skip
