"""What this processor can do, read once from the operating system.  Imports nothing heavy."""

from __future__ import annotations

import functools
import os
import sys

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
