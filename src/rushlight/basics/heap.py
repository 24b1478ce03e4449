"""Freed memory kept for the next array, instead of given back and asked for again.  Imports nothing heavy.

The C library gives a freed block of more than 128 KiB (later: 32 MiB) back to the operating system at once.  A
training step asks for the same large arrays again and again, and each comes back as pages that the system must find
and clear: 0.2 to 0.4 s of a step of 1.7 s.  With the thresholds raised, freed blocks are merged and used again; the
peak stays what it was, for the blocks in use decide it.
"""

from __future__ import annotations

import ctypes
import os
import sys

KEEP = 1 << 30  # bytes free at the end of the heap from which on they are given back
_LARGEST = KEEP // 2  # blocks from this size on come from the system one by one
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_done = False
_exact = False


def users_choice() -> bool:
    """Whether the user tuned the C library's allocator, which is then left alone, or switched this off."""
    off = os.environ.get("RUSHLIGHT_KEEP_FREED", "1").lower() in ("0", "false", "off", "no")
    tuned = any(name.startswith("MALLOC_") and name.endswith("_") for name in os.environ)
    return off or tuned or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")


def keep_freed() -> bool:
    """Let glibc keep up to ``KEEP`` bytes of freed memory; whether it does.  Once per process."""
    global _done
    if _done or not sys.platform.startswith("linux") or users_choice():
        return _done

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "gnu_get_libc_version"):
        return False
    _done = bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST) and libc.mallopt(_M_TRIM_THRESHOLD, KEEP))
    return _done


EXACT = 1 << 17  # bytes from which on, in exact mode, a block is given back to the system as soon as it is freed


def exact(on: bool) -> bool:
    """Have the process take no more memory than what is allocated, at the price of asking for it again and again.

    Returns whether it was so before. What is free is given back at once.
    """
    global _exact
    former, _exact = _exact, on
    if on != former and (_done or not users_choice()) and sys.platform.startswith("linux"):
        import ctypes

        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt") and hasattr(libc, "gnu_get_libc_version"):
            libc.mallopt(_M_MMAP_THRESHOLD, EXACT if on else _LARGEST)
            libc.mallopt(_M_TRIM_THRESHOLD, EXACT if on else KEEP)
            give_back()
    return former


def give_back() -> bool:
    """Return freed memory to the operating system now; whether some was."""
    if not sys.platform.startswith("linux"):
        return False

    libc = ctypes.CDLL(None)
    return bool(hasattr(libc, "malloc_trim") and libc.malloc_trim(0))
