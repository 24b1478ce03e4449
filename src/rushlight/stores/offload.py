"""Saved tensors on disk."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.basics.caller import warn
from rushlight.stores.errors import StoreWarning, filesystem, in_memory, size
from rushlight.stores.files import Spill
from rushlight.stores.store import Store

if TYPE_CHECKING:
    import numpy as np

    from rushlight.basics.arrays import Array
    from rushlight.stores.files import Piece
    from rushlight.stores.region import Handle, Region

REACH = 64  # handles that are looked at for reading ahead


class Order:
    """The order in which handles were made: backward wants them the other way round, and is read ahead for.

    position: the handle wanted last. held: by number of a handle that is wanted soon, what its region was restored to.
    """

    def __init__(self, spill: Spill):
        self.spill, self.lock = spill, threading.RLock()
        self.handles: dict[int, Any] = {}  # weak references, by number
        self.next = 0
        self.position = 0
        self.held: dict[int, Any] = {}

    def add(self, handle: Handle) -> None:
        """One more handle."""
        with self.lock:
            handle.number, handle.order = self.next, self
            handle.region.order = self
            handle.region.numbers.append(self.next)
            self.handles[self.next] = weakref.ref(handle)
            self.next += 1

    def gone(self, number: int) -> None:
        """A handle died."""
        self.handles.pop(number, None)
        if self.held.pop(number, None) is not None:
            self.spill.held = self.bytes_held()  # without its lock, since this may run within any code

    def wanted(self, number: int) -> None:
        """A handle is asked for its tensor."""
        self.position = number

    def restored(self, region: Region, root: Array) -> None:
        """Keep what a region was restored to, if another handle of it is wanted soon: in up to half of the memory."""
        with self.lock:
            region.numbers = [n for n in region.numbers if n in self.handles]
            earlier = max((n for n in region.numbers if n < self.position), default=-1)
            if earlier < 0 or self.position - earlier > REACH:
                return
            if self.bytes_held() + root.nbytes <= self.spill.memory // 2:
                self.held[earlier] = root
                self.spill.hold(self.bytes_held())

    def bytes_held(self) -> int:
        """Bytes of what is kept for handles that are wanted soon."""
        return sum({id(root): int(root.nbytes) for root in list(self.held.values())}.values())

    def ahead(self, number: int) -> None:
        """A handle got its tensor: read for those that will be wanted next, as far as memory allows."""
        with self.lock:
            done = [n for n in list(self.held) if n >= number]
            for n in done:
                self.held.pop(n, None)
            if done:
                self.spill.hold(self.bytes_held())
            for n in range(number - 1, max(-1, number - 1 - REACH), -1):
                reference = self.handles.get(n)
                handle = None if reference is None else reference()
                if handle is None or n in self.held or handle.region.stays:
                    continue
                if not all(coded.note.prefetch() for coded in handle.region.walk() if coded.store.on_disk):
                    break


class DiskStore(Store):
    """Keeps saved tensors in temporary files without a name: nothing stays on disk, however the process ends.

    Tensors are written by threads of the store's own while forward goes on, and read ahead by them in the order in which
    backward will ask. What waits in memory is bounded; a tensor that is asked for before it was written never left it.
    Every byte is verified on return. Space in the file is used again; when everything is freed the file is empty.

    Args:
        dir: the directory, which must exist; that for temporary files if None. One in memory (tmpfs, as /dev/shm) would save
            nothing: of that a `StoreWarning` warns.
        memory: bytes, as a number or text, of tensors that wait to be written or were read ahead. A larger tensor is written
            at once by the thread that saves it. Can be set later.
        threads: how many threads write and read at once.
        verify: whether bytes are compared with their checksums on return.
        Further: the filters of every store; `min_bytes` is 65536 by default.

    Raises `StoreError` where the file system has not enough room, before anything is written, naming it with the bytes
    needed and free. What a thread could not write stays in memory, and the error is raised when the next tensor is saved or
    the context ends: graphs made before stay usable, and training can go on without the store.

    >>> import rushlight as torch
    >>> from rushlight import stores
    >>> x = torch.ones(100, 1000, requires_grad=True)
    >>> with stores.disk() as store:
    ...     y = x.sin().exp().sum()
    >>> y.backward()
    >>> store.stats()["bytes"]
    400000
    """

    kind = "disk"
    on_disk = exact = True

    def __init__(self, dir: Any = None, *, memory: int | str = 1 << 26, threads: int = 2, verify: bool = True,
                 min_bytes: int | str = 65536, **filters: Any):  # fmt: skip
        super().__init__(min_bytes=min_bytes, **filters)
        self.spill = Spill(dir, memory=memory, threads=threads, verify=verify)
        self.order = Order(self.spill)
        if in_memory(self.spill.file.dir):
            warn(
                f"stores.disk: {self.spill.file.dir} lies in memory ({filesystem(self.spill.file.dir)}): what is written there "
                "saves none. Give a directory on a disk",
                StoreWarning,
            )

    def encode(self, array: Array, guard: Callable[..., Any]) -> tuple[list[Any], Any]:
        return [], self.spill.put(array, guard)

    def decode(self, parts: list[Any], note: Piece, count: int, dtype: np.dtype[Any]) -> Array:
        return note.get()

    def ended(self) -> None:
        super().ended()
        self.spill.check()

    @property
    def memory(self) -> int:
        """The bound on bytes that wait to be written or were read ahead."""
        return self.spill.memory

    @memory.setter
    def memory(self, limit: int | str) -> None:
        self.spill.memory = limit

    @property
    def memory_now(self) -> int:
        """Bytes that this store holds in memory."""
        return self.spill.memory_now

    def stats(self) -> dict[str, Any]:
        """As of every store, and of the file.

        put, written, read: bytes. from_memory, read_ahead: bytes that were asked for before they were written, and that
        were there when they were asked for. failed: bytes that could not be written. memory: bytes held in memory now.
        disk: bytes that the file takes now. waited: seconds that forward and backward waited.
        """
        return {**super().stats(), **self.spill.stats(), "memory": self.memory_now}

    def arguments(self) -> list[str]:
        return [repr(self.spill.file.dir), f"memory={size(self.spill.memory)}", *super().arguments()]
