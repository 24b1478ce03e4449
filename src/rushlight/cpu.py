"""What this processor can do, read once from the operating system.  Imports nothing heavy."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

__path__: list[str] = []  # so that `torch.cpu.amp` can be imported, which is a module of a higher floor

_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@functools.cache
def description() -> dict[str, str]:
    """The first processor's entries in ``/proc/cpuinfo`` (Linux), else an empty dict."""
    try:
        with open("/proc/cpuinfo") as file:
            first = file.read(16384).split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


@functools.cache
def flags() -> frozenset[str]:
    """Instruction set flags of an x86 processor as Linux names them; empty where unknown."""
    return frozenset(description().get("flags", "").split())


def machine() -> str:
    """``x86_64``, ``aarch64``, ... ; without ``platform``, whose import is slow."""
    return os.uname().machine if hasattr(os, "uname") else ("AMD64" if sys.maxsize > 2**32 else "x86")


def level() -> int:
    """The x86-64 level (2, 3 or 4) of the psABI that this processor has; 0 where unknown."""
    if machine() != "x86_64" or not flags():
        return 0
    return 4 if flags() >= _V4 else 3 if flags() >= _V3 else 2


def count() -> int:
    """Processors this process may use (its affinity mask), at least 1."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


# As `torch.cpu`: the questions that PyTorch asks of any device ------------------------------------------------------


def is_available() -> bool:
    """Whether there is a processor: yes."""
    return True


def is_initialized() -> bool:
    """Whether it can be used: yes."""
    return True


def device_count() -> int:
    """How many devices the processors count as: 1."""
    return 1


def current_device() -> str:
    """The device in use: "cpu"."""
    return "cpu"


def set_device(device: object) -> None:
    """Choose a device: there is one."""


def synchronize(device: object = None) -> None:
    """Wait for work: it is done when a call returns."""


class Stream:
    """A queue of work: what is put into it is done when the call returns."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another queue: its work is done."""

    def record_event(self) -> None:
        """Mark a moment: all work before it is done."""

    def wait_event(self, event: object) -> None:
        """Wait for a moment: it has passed."""


class Event:
    """A moment in a queue of work."""

    def record(self, stream: Stream | None = None) -> None:
        """Let it be now."""

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for it: it has passed."""

    def query(self) -> bool:
        """Whether the work before it is done: yes."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before it: it is done."""


_stream = Stream()


def current_stream(device: object = None) -> Stream:
    """The queue in use."""
    return _stream


class StreamContext:
    """Use a queue within a block."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """Use a queue within a block."""
    return StreamContext(stream)


def get_capabilities() -> dict[str, object]:
    """What the processor can do: "architecture", "cpu_name", and by names of instruction sets whether it has them."""
    known = flags()
    return {"architecture": machine(), "cpu_name": description().get("model name", ""),
            **{name: name in known for name in ("avx2", "avx512f", "fma", "sse4_2")}}  # fmt: skip


# By the end of PyTorch's names for questions about instruction sets: the flags of a processor that has them.
_ASKED = {
    "_is_avx2_supported": ("avx2", "fma"), "_is_avx512_supported": ("avx512f", "avx512vl", "avx512bw", "avx512dq"),
    "_is_avx512_bf16_supported": ("avx512_bf16",), "_is_vnni_supported": ("avx512_vnni",),
    "_is_amx_tile_supported": ("amx_tile",), "_is_amx_fp16_supported": ("amx_fp16",), "_is_arm_sve_supported": ("sve",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ASKED:
        return lambda: set(_ASKED[name]) <= flags()
    if name != "amp":
        raise AttributeError(f"module 'torch.cpu' has no attribute {name!r}")
    import importlib

    return importlib.import_module("rushlight.compat.rooms.cpu_amp")
