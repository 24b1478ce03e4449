"""What goes wrong with stores, and how it is said."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from rushlight.basics.errors import explained

if TYPE_CHECKING:
    from rushlight.stores.files import Slot


class StoreError(RuntimeError):
    """A store could not take or give back what it was asked to: a full disk, an I/O error, bytes that changed on disk."""


class StoreWarning(UserWarning):
    """Something about a store that is likely not meant, such as one that never stored anything."""


def frameless(error: Exception) -> Exception:
    """An error, to be kept, and those that it came from without the frames that they passed: they hold the callers' arrays."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__, found = None, found.__cause__ or found.__context__
    return error


def size(count: float) -> str:
    """A number of bytes to read: "1.5 MiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.2f} {unit}"
        count /= 1024
    raise AssertionError


_BYTES = re.compile(r"(\d{1,3}(?:,\d{3})+|\d[\d_]*\.?\d*(?:e[+-]?\d+)?|\.\d+)([kmgtp]?)(i?)(b|bytes?)?", re.ASCII)


def bytes_of(limit: int | str, name: str = "memory") -> int:
    """A number of bytes given as one or as text: 1024, "64 MiB", "2GB", "1.5g", "2e9".  Raises ValueError for anything else.

    KB, MB, GB, TB, PB are powers of 1,000; KiB, MiB ... and the bare letters k, m, g, t, p of 1,024, as for `head -c`,
    Docker and systemd.

    >>> bytes_of("2 GB"), bytes_of("2GiB"), bytes_of("2g"), bytes_of("1,000,000")
    (2000000000, 2147483648, 2147483648, 1000000)
    """
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return limit
    found = _BYTES.fullmatch(re.sub(r"\s", "", str(limit)).lower())
    if found is None or (found[3] and not found[2]) or (len(found[4] or "") > 1 and found[2]):
        raise explained(
            ValueError(f'{name}: expected bytes, as 1048576, "64 MiB", "2GB" or "2g", got {limit!r}'), "sizes-in-words"
        )
    thousand = 1000 if found[4] and not found[3] else 1024
    count: int = round(float(found[1].replace(",", "").replace("_", "")) * thousand ** " kmgtp".index(found[2] or " "))
    return count


def mount_point(path: str) -> str:
    """Where the file system that holds `path` is mounted."""
    place = os.path.realpath(path)
    while not os.path.ismount(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    return place


def in_memory(path: str) -> bool:
    """Whether the file system that holds `path` is known to lie in memory."""
    return kind_of(mount_point(path)) in ("tmpfs", "ramfs")


def filesystem(path: str) -> str:
    """The file system that holds `path`: "ext4 at /home"."""
    place = mount_point(path)
    kind = kind_of(place)
    return f"{kind} at {place}" if kind else place


def kind_of(mount_point: str) -> str:
    """The type of the file system mounted there; "" where the system does not tell."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as lines:
            found = [line.split()[2] for line in lines if line.split()[1].replace("\\040", " ") == mount_point]
    except (OSError, IndexError):
        return ""
    return found[-1] if found else ""


WRITE = (
    "What was not written is still in memory: graphs made so far stay usable, and training can go on without the store or "
    "with one in another directory."
)
READ = "What lay there is lost, unless it can be read later: the disk, or another process, took it away."


def io_error(what: str, dir: str, needed: int, error: Any) -> StoreError:
    """The error for a failed call of the system; `what` is "write" or "read"."""
    free = space(dir)
    made = StoreError(
        f"stores.disk: the {what} of {needed} bytes ({size(needed)}) in {dir} ({filesystem(dir)}, "
        f"{'unknown' if free is None else free} bytes free) failed: {error}. {READ if what == 'read' else WRITE}"
    )
    made.__cause__ = error
    return made


def no_space(dir: str, needed: int, pending: int, free: int) -> StoreError:
    """The error for a disk without room, found before anything is written."""
    also = f" beside {pending} bytes waiting to be written" if pending else ""
    return StoreError(
        f"stores.disk: {needed} bytes ({size(needed)}) do not fit on {filesystem(dir)} (directory {dir}){also}: "
        f"{free} bytes ({size(free)}) are free. Graphs made so far stay usable, and training can go on without the store: "
        "give it a directory on another file system, raise min_bytes=, or compress first."
    )


def space(dir: str) -> int | None:
    """The bytes that this user can still write in a directory; None where the system does not tell."""
    try:
        found = os.statvfs(dir)
    except (OSError, AttributeError):
        return None
    return int(found.f_bavail * found.f_frsize)


def changed(slot: Slot, digest: int) -> StoreError:
    """The error for bytes that came back from disk as others."""
    return StoreError(
        f"stores.disk: {slot.nbytes} bytes at {slot.offset} of the temporary file in {slot.file.dir} "
        f"({filesystem(slot.file.dir)}) are not those that were written (checksum {digest:016x}, expected {slot.digest:016x}): the "
        "disk, or another process, changed them"
    )
