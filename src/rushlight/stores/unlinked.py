"""A temporary file without a name: the system removes it with the last process that holds it, however that ends."""

from __future__ import annotations

import errno
import os
import tempfile
from bisect import bisect_left, insort
from typing import Any

from rushlight.basics.errors import explained
from rushlight.kernels.digests import digest
from rushlight.stores.errors import StoreError, io_error, no_space, space

ALIGN = 4096  # extents begin at pages
CHUNK = 1 << 20  # bytes that are summed and written at a time, while they are in the cache


def pages(count: int) -> int:
    """The bytes of whole pages that hold `count`."""
    return max(1, -(-count // ALIGN)) * ALIGN


def opened(dir: str) -> int:
    """A new file in `dir` that no directory names.  Raises OSError."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is not None:
        try:
            return os.open(dir, flag | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                raise
    fd, name = tempfile.mkstemp(prefix="rushlight-", dir=dir)
    os.unlink(name)
    return fd


class Unlinked:
    """Extents of one such file.  It is opened by the first; freed extents are used again; empty, it takes no space.

    Not for several threads at once but for `write` and `read`.
    """

    def __init__(self, dir: str | None = None):
        self.dir = os.path.abspath(tempfile.gettempdir() if dir is None else os.fspath(dir))
        if not os.path.isdir(self.dir):
            raise explained(
                StoreError(f"stores.disk: {self.dir} is no directory: create it, or give another"),
                "store-without-a-folder",
            )
        self.fd, self.end, self.used, self.pending = -1, 0, 0, 0
        self.holes: list[tuple[int, int]] = []  # (offset, bytes), by offset
        self.shared = False  # with a process that was forked: nothing in it may change any more

    def allocate(self, count: int) -> int:
        """The offset of `count` bytes.  Raises StoreError where the file system has no room for them."""
        if self.fd < 0:
            try:
                self.fd = opened(self.dir)
            except OSError as error:
                raise io_error("open", self.dir, count, error) from error
        need = pages(count)
        best = min((h for h in self.holes if h[1] >= need), key=lambda h: h[1], default=None)
        if best is not None:
            self.holes.remove(best)
            if best[1] > need:
                insort(self.holes, (best[0] + need, best[1] - need))
            self.used += need
            return best[0]
        self.check(need)
        offset, self.end = self.end, self.end + need
        self.used += need
        self.pending += need
        return offset

    def check(self, need: int) -> None:
        """Raise StoreError unless the file can grow by `need` bytes."""
        free = space(self.dir)
        if free is not None and need + self.pending > free:
            raise no_space(self.dir, need, self.pending, free)

    def settled(self, count: int) -> None:
        """Note that `count` new bytes were written, or will not be."""
        self.pending = max(0, self.pending - pages(count))

    def release(self, offset: int, count: int) -> None:
        """Free an extent."""
        if self.shared:
            return
        need = pages(count)
        self.used -= need
        if self.used == 0:
            self.empty()
            return
        at = bisect_left(self.holes, (offset, 0))
        if at < len(self.holes) and self.holes[at][0] == offset + need:
            need += self.holes.pop(at)[1]
        if at and sum(self.holes[at - 1]) == offset:
            start, before = self.holes.pop(at - 1)
            offset, need = start, before + need
        if offset + need == self.end:
            self.end = offset
        else:
            insort(self.holes, (offset, need))

    def empty(self) -> None:
        """Give all space back to the file system."""
        self.holes, self.end, self.pending = [], 0, 0
        try:
            os.ftruncate(self.fd, 0)
        except OSError:  # it stays as long as it was: no harm but the space
            pass

    def digest(self, data: Any) -> int:
        """What `write` and `read` return for these bytes."""
        found = 0
        for at in range(0, len(data), CHUNK):
            found = digest(data[at : at + CHUNK], found)
        return found

    def write(self, offset: int, data: Any, verify: bool = True) -> int:
        """Write bytes, (N) of uint8, and return their digest, 0 unless it will be asked for.  Raises OSError."""
        at = found = 0
        while at < len(data):
            part = data[at : at + CHUNK]
            found, done = digest(part, found) if verify else 0, 0
            while done < len(part):
                done += os.pwrite(self.fd, part[done:], offset + at + done)
            at += len(part)
        return found

    def read(self, offset: int, into: Any, verify: bool = True) -> int:
        """Fill (N) of uint8 and return the digest of what came, 0 unless it is asked for.

        Raises OSError, also where the file ends too early.
        """
        at = found = 0
        while at < len(into):
            part, got = into[at : at + CHUNK], 0
            while got < len(part):
                more = os.preadv(self.fd, [part[got:]], offset + at + got)
                if more == 0:
                    raise OSError(errno.EIO, f"the file ends {len(into) - at - got} bytes early")
                got += more
            found = digest(part, found) if verify else 0
            at += got
        return found

    def __del__(self) -> None:
        if getattr(self, "fd", -1) >= 0:
            os.close(self.fd)
