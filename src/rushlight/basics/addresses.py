"""Addresses without memory behind them: for arrays that have a shape and strides before they have values."""

from __future__ import annotations

import mmap
import sys

# Reserved, not promised: more than the machine has can be asked for.  (Python names the flag from 3.13 on.)
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_FLAGS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE} if hasattr(mmap, "MAP_PRIVATE") else {}


def reserved(count: int) -> mmap.mmap:
    """So many bytes of addresses, without memory behind them until they are written to.  OSError where they are refused."""
    return mmap.mmap(-1, count, **_FLAGS)
