"""Arrays on disk: writer threads behind a queue bounded in bytes, reading ahead, bytes verified on return.

    spill = Spill(dir, memory="64 MiB")
    piece = spill.put(array)   # the caller gives the array away: it must not change until it is written or freed
    piece.prefetch()           # begin to read it
    array = piece.get()        # as often as wanted
    piece.free()               # or drop the piece

`spill.memory_now` counts what waits to be written, what was read ahead, and what could not be written; the first two
stay below `spill.memory`, which can be set at any time.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.caller import warn
from rushlight.stores.errors import StoreError, StoreWarning, bytes_of, changed, io_error
from rushlight.stores.unlinked import Unlinked

IDLE = 0.5  # seconds after which a thread without work ends
QUEUED, WRITING, WRITTEN, KEPT = range(4)
spills: weakref.WeakSet[Any] = weakref.WeakSet()
ending = threading.Event()  # whether the interpreter ends: no more threads


class Slot:
    """The state of one piece, shared with the threads."""

    __slots__ = ("ahead", "array", "busy", "dead", "digest", "file", "fresh", "guard", "into", "like", "nbytes",
                 "offset", "reading", "reserved", "spoiled", "state")  # fmt: skip

    def __init__(self, array: Array, file: Unlinked, offset: int):
        self.array: Any = array  # until it is written
        self.ahead: Any = None  # what was read ahead
        self.into: Any = None  # what it is being read into
        self.like = array.shape, array.dtype
        self.file, self.offset, self.nbytes, self.digest = file, offset, array.nbytes, 0
        self.state, self.busy = QUEUED, 0  # busy: threads at the extent
        self.dead = self.reading = False
        self.guard: Any = None  # tells whether the array is unchanged
        self.spoiled = False  # whether it was changed before it was written
        self.reserved = False  # whether it counts among the bytes read ahead: from the request on
        self.fresh = True  # whether it counts among the bytes by which the file will grow

    @property
    def in_memory(self) -> bool:
        """Whether the whole array is in memory."""
        return self.array is not None or self.ahead is not None


class Piece:
    """An array in a `Spill`.  When the piece dies, so does what it has on disk."""

    __slots__ = ("__weakref__", "axes", "dtype", "shape", "slot", "spill")

    def __init__(self, spill: Spill, slot: Slot, array: Array, axes: tuple[int, ...] | None):
        self.spill, self.slot, self.axes = spill, slot, axes
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.slot.nbytes

    def get(self, out: Array | None = None) -> Array:
        """The array: the very one that was put as long as that waits to be written, else one read from disk.

        out: a C-contiguous array of at least as many bytes to read into; it is returned, with its own shape.
        Raises StoreError where reading fails or the bytes are not those that were written.
        """
        found = self.spill._take(self.slot, out)
        return found if out is not None else self.laid_out(found)

    def holds(self, array: Array) -> bool:
        """Whether these are the bytes on disk of an array that was put in C order; False also where nobody knows."""
        slot = self.slot
        return bool(
            self.spill.verify
            and self.axes is None
            and slot.state == WRITTEN
            and array.nbytes == slot.nbytes
            and array.flags.c_contiguous
            and slot.file.digest(flat_bytes(array)) == slot.digest
        )

    def laid_out(self, data: Array) -> Array:
        """Bytes, or elements in the order of memory, as the array that was put."""
        if data.dtype != self.dtype or data.ndim != len(self.shape) or self.axes is not None:
            order = self.shape if self.axes is None else [self.shape[i] for i in self.axes]
            data = data.view(self.dtype).reshape(order)
        return data if self.axes is None else data.transpose(np.argsort(self.axes))

    def prefetch(self) -> bool:
        """Begin to read the array, unless it is in memory; False where the bound on memory forbids it now."""
        return self.spill._prefetch(self.slot)

    @property
    def in_memory(self) -> bool:
        """Whether `get` would not wait for the disk."""
        return self.slot.in_memory

    @property
    def takes_memory(self) -> bool:
        """Whether memory of its size is in use for it: it waits to be written, was read ahead, or is being read."""
        return self.in_memory or self.slot.into is not None

    def arrays(self) -> list[Any]:
        """What is in memory of it."""
        return [a for a in (self.slot.array, self.slot.ahead) if a is not None]

    def free(self) -> None:
        """Give the extent and the memory back now."""
        self.spill._free(self.slot)

    def __del__(self) -> None:
        slot = getattr(self, "slot", None)
        if slot is not None and not slot.dead:
            self.spill._free(slot)


def ordered(array: Array) -> tuple[Any, Any]:
    """An array as its elements lie in memory, and the axes that order it so (None: as it was): a copy if it has gaps."""
    if array.flags.c_contiguous:
        return array, None
    axes = tuple(sorted(range(array.ndim), key=lambda i: -abs(array.strides[i])))
    turned = array.transpose(axes)
    return (turned, axes) if turned.flags.c_contiguous else (np.ascontiguousarray(array), None)


def flat_bytes(array: Array) -> Array:
    """The bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)


def filled(out: Array, data: Array) -> Any:
    """`out`, its first bytes those of `data`."""
    flat_bytes(out)[: data.nbytes] = flat_bytes(data)
    return out


class Spill:
    """A place on disk for arrays.

    Args:
        dir: where; the directory for temporary files if None. No file there has a name: nothing stays behind.
        memory: bytes, as a number or text, that arrays waiting to be written or read ahead may take together. An array that
            is larger is written by the thread that puts it.
        threads: writers and readers at once, at most.
        verify: whether checksums are compared on return.
    """

    def __init__(self, dir: Any = None, *, memory: int | str = 1 << 26, threads: int = 2, verify: bool = True):
        self.file, self.verify, self.threads = Unlinked(dir), verify, threads
        self.limit = bytes_of(memory)
        self.queued = self.ahead = self.kept = self.held = 0  # bytes
        self.writes: deque[Slot] = deque()
        self.reads: deque[Slot] = deque()
        self.aheads: deque[Slot] = deque()  # slots whose array was read ahead, the oldest first
        self.active: set[Slot] = set()  # at which a thread reads or writes
        self.dead: deque[Slot] = deque()  # freed by a destructor within one of the locked parts below
        self.error: StoreError | None = None  # to be raised by the next `put`
        self.unsaid: StoreError | None = None  # the same, until it was raised or a `get` warned of it
        self.workers = self.idle = 0
        self.counts = dict.fromkeys(("put", "written", "read", "from_memory", "read_ahead", "failed"), 0)
        self.waited = self.writing = self.reading = 0.0  # seconds
        self.moving: Callable[[], AbstractContextManager[None]] = (
            nullcontext  # in which memory of a piece comes or goes
        )
        self.lock: Any = threading.RLock()
        self.turn = threading.Condition(self.lock)
        spills.add(self)

    # The public part -------------------------------------------------------------------------------

    def put(self, array: Array, guard: Callable[..., Any] | None = None) -> Piece:
        """Take an array.  Waits while the bound on memory is reached; raises StoreError for a full disk, and for what went
        wrong with earlier arrays since.

        guard: called after the array was written: whether it was left unchanged until then. Else `get` raises.
        """
        plain, axes = ordered(array)
        with self.turn:
            self._sweep()
            self._raise()
            self._room(plain.nbytes)
            slot = Slot(plain, self.file, self.file.allocate(plain.nbytes))
            slot.guard = guard
            self.counts["put"] += plain.nbytes
            self.queued += plain.nbytes
            direct = plain.nbytes > self.limit or not self._hire(bool(self.writes or self.reads))
            if direct:
                slot.state = WRITING
                self.active.add(slot)
            else:
                self.writes.append(slot)
                self.turn.notify_all()
        piece = Piece(self, slot, array, axes)
        if direct:
            try:
                self._write(slot)
                self._raise()
            except BaseException:  # nobody gets the piece
                piece.free()
                raise
        return piece

    @property
    def memory_now(self) -> int:
        """Bytes of arrays that wait to be written, are read ahead, or could not be written."""
        if self.dead:  # freed while another thread held the lock
            with self.turn:
                self._sweep()
        return self.queued + self.ahead + self.kept + self.held

    @property
    def memory(self) -> int:
        """The bound on the bytes that wait to be written or are read ahead."""
        return self.limit

    @memory.setter
    def memory(self, limit: int | str) -> None:
        with self.turn:
            self.limit = bytes_of(limit)
            self._shed(0)
            self.turn.notify_all()

    @property
    def unwanted(self) -> int:
        """Bytes in memory of arrays that nobody can ask for any more: freed, and not released yet."""
        with self.turn:
            slots = {*self.dead, *(slot for slot in self.active if slot.dead)}
            return sum(int(slot.nbytes) for slot in slots if slot.in_memory or slot.into is not None)

    def hold(self, count: int) -> None:
        """Count this many bytes, which the caller holds of what it got, among those that were read ahead."""
        with self.turn:
            self.held = count
            self._shed(0)

    def flush(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until everything is written, or that is enough; raises StoreError for what was not."""
        start = perf_counter()
        with self.turn:
            while self.queued and self.workers and not enough():
                self.turn.wait(0.1)
            self.waited += perf_counter() - start
            self._raise()

    def forget_ahead(self) -> None:
        """Drop what was read ahead, or was to be: its memory is needed. Waits for what is being read just now."""
        with self.turn:
            while self.reads:
                self._forget(self.reads.popleft())
            while self.workers and any(slot.reading for slot in self.active):
                self.turn.wait(0.1)
            while self.aheads:
                self._forget(self.aheads.popleft())

    def check(self) -> None:
        """Raise StoreError if something could not be written since this was asked last."""
        with self.turn:
            self._raise()

    def stats(self) -> dict[str, Any]:
        """Bytes put, written, read, ...; `disk` is what the file takes now, `waited` the seconds that callers waited."""
        with self.turn:
            self._sweep()
        return {**self.counts, "memory": self.memory_now, "disk": self.file.used, "waited": self.waited}

    def seconds_per_byte(self, guess: float) -> float:
        """What it took to write a byte and to read it; `guess` until 16 MiB were written or read."""
        counts, both = self.counts, 0.0
        for seconds, count in ((self.writing, counts["written"]), (self.reading, counts["read"])):
            both += seconds / count if count >= 1 << 24 else guess / 2
        return both

    # With the lock held ----------------------------------------------------------------------------

    def _raise(self) -> None:
        error, self.error, self.unsaid = self.error, None, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # or it and this frame would hold each other, and the callers' arrays

    def _room(self, count: int) -> None:
        """Wait until `count` more bytes fit below the bound, or nothing is left to wait for."""
        self._shed(count)
        start = None
        while (
            self.queued and self.queued + self.ahead + self.held + count > self.limit and (self.workers or self.active)
        ):
            start = perf_counter() if start is None else start
            self.turn.wait(0.1)
            self._sweep()
            self._shed(count)
        if start is not None:
            self.waited += perf_counter() - start
            self._raise()

    def _shed(self, count: int) -> None:
        """Forget what was or is to be read ahead, the latest first, where it stands in the way of `count` bytes."""
        while (self.reads or self.aheads) and self.queued + self.ahead + self.held + count > self.limit:
            self._forget((self.reads or self.aheads).pop())

    def _forget(self, slot: Slot) -> None:
        """Drop what was read ahead, or the request."""
        if slot.ahead is not None:
            with self.moving():
                slot.ahead = None
        if slot.reserved:
            slot.reserved = slot.reading = False
            self.ahead -= slot.nbytes

    def _hire(self, more: bool) -> bool:
        """Have a thread at work; one more, if there is `more` to do than those here take.  False where none can start."""
        if self.workers and (self.idle or not more or self.workers >= self.threads):
            return True
        if ending.is_set():
            return False
        try:
            self.workers += 1
            threading.Thread(target=work, args=(self,), name="rushlight.stores", daemon=True).start()
        except RuntimeError:  # the interpreter is ending
            self.workers -= 1
        return self.workers > 0

    def _sweep(self) -> None:
        """Release what was freed."""
        while self.dead:
            self._bury(self.dead.popleft())

    def _bury(self, slot: Slot) -> None:
        """Release the extent and the memory of a freed slot, unless a thread is at it: that one will."""
        if slot.state == QUEUED:
            self.queued -= slot.nbytes
            self._drop(slot, WRITTEN)
            self.writes.remove(slot)
        if slot.state == KEPT and slot.array is not None:
            self.kept -= slot.nbytes
            self._drop(slot, KEPT)
        if slot.ahead is not None:
            self.aheads.remove(slot)
            self._forget(slot)
        if slot in self.reads:
            self.reads.remove(slot)
            self._forget(slot)
        if slot.busy == 0 and slot not in self.active:
            self._give_back(slot)
        self.turn.notify_all()

    def _drop(self, slot: Slot, state: int) -> None:
        """Give up what was to be written."""
        with self.moving():
            slot.array, slot.guard, slot.state = None, None, state

    def _give_back(self, slot: Slot) -> None:
        """Release the extent, once."""
        if slot.fresh:
            slot.fresh = False
            slot.file.settled(slot.nbytes)
        if slot.offset >= 0:
            slot.file.release(slot.offset, slot.nbytes)
            slot.offset = -1

    # Pieces ----------------------------------------------------------------------------------------

    def _free(self, slot: Slot) -> None:
        """Free a slot: also from a destructor, which may run anywhere, so it never waits.

        Where the lock is taken, by this thread or by one that may be waiting for this thread to start, the next to take it
        releases what was freed.
        """
        if slot.dead:
            return
        slot.dead = True
        self.dead.append(slot)
        if not self.lock._is_owned() and not sys.is_finalizing() and self.lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self.lock.release()

    def _take(self, slot: Slot, out: Array | None) -> Any:
        """The array of a slot, from memory or from disk."""
        if slot.dead:
            raise StoreError("stores.disk: the piece was freed, its bytes are gone")
        if slot.spoiled:
            raise StoreError(
                f"stores.disk: a saved tensor of {slot.nbytes} bytes has been modified by an inplace operation before it was "
                "written: its gradient cannot be computed. Use the out-of-place form of the operation, or clone() the tensor"
            )
        with self.turn:
            self._sweep()
            found = self._in_memory(slot)
            slot.busy += 1
            failed, self.unsaid = self.unsaid, None
        if failed is not None:  # nothing is lost: backward goes on
            warn(str(failed), StoreWarning)
        try:
            if found is None:
                return self._read(slot, out)
        finally:
            with self.turn:
                slot.busy -= 1
                if slot.dead:
                    self._bury(slot)
        return found if out is None else filled(out, found)

    def _in_memory(self, slot: Slot) -> Any:
        """What memory has of a slot, after waiting for who reads it ahead; that is handed over."""
        if slot in self.reads:  # nobody has begun: the caller reads it
            self.reads.remove(slot)
            self._forget(slot)
        start = perf_counter()
        while slot.reading and self.workers:
            self.turn.wait(0.1)
        self.waited += perf_counter() - start
        if slot.array is not None:
            self.counts["from_memory"] += slot.nbytes
            return slot.array
        found = slot.ahead
        if found is not None:
            self.counts["read_ahead"] += slot.nbytes
            self.aheads.remove(slot)
            self._forget(slot)
            self.turn.notify_all()
        return found

    def _read(self, slot: Slot, out: Array | None = None) -> Array:
        """The bytes of a slot from disk, verified."""
        start = perf_counter()
        data = np.empty(slot.nbytes, np.uint8) if out is None else flat_bytes(out)[: slot.nbytes]
        try:
            digest = slot.file.read(slot.offset, data, self.verify)
        except OSError as error:
            raise io_error("read", slot.file.dir, slot.nbytes, error) from error
        if self.verify and digest != slot.digest:
            raise changed(slot, digest)
        with self.turn:
            self.counts["read"] += slot.nbytes
            self.reading += perf_counter() - start
            if slot not in self.active:
                self.waited += perf_counter() - start
        return data if out is None else out

    def _prefetch(self, slot: Slot) -> bool:
        with self.turn:
            self._sweep()
            if slot.array is not None or slot.reserved or slot.dead:
                return True
            if self.queued + self.ahead + self.held + slot.nbytes > self.limit or not self._hire(bool(self.reads)):
                return False
            slot.reserved = slot.reading = True
            self.ahead += slot.nbytes
            self.reads.append(slot)
            self.turn.notify_all()
            return True

    # Threads ---------------------------------------------------------------------------------------

    def _write(self, slot: Slot) -> None:
        """Write a slot and drop its array; one that cannot be written stays in memory."""
        failure: BaseException | None = None
        start = perf_counter()
        try:
            slot.digest = slot.file.write(slot.offset, flat_bytes(slot.array), self.verify)
            slot.spoiled = slot.guard is not None and not slot.guard()
        except BaseException as error:
            failure = error
        with self.turn:
            if failure is None:
                self._drop(slot, WRITTEN)
            self.active.discard(slot)
            self.queued -= slot.nbytes
            if failure is None:
                self.counts["written"] += slot.nbytes
                self.writing += perf_counter() - start
                if slot.fresh:
                    slot.fresh = False
                    slot.file.settled(slot.nbytes)
            else:
                slot.state = KEPT
                self.kept += slot.nbytes
                self.counts["failed"] += slot.nbytes
                self._give_back(slot)
                if isinstance(failure, OSError):
                    self.error = self.unsaid = io_error("write", slot.file.dir, slot.nbytes, failure)
                    failure = None
            if slot.dead:
                self._bury(slot)
            self.turn.notify_all()
        if failure is not None:
            raise failure

    def _read_ahead(self, slot: Slot) -> None:
        """Read a slot for a later `get`, which tries again where this fails."""
        data = None
        try:
            with self.turn:  # who holds the lock knows which memory is in use for what
                with self.moving():
                    slot.into = np.empty(*slot.like)
            data = self._read(slot, slot.into)
        except (StoreError, MemoryError):
            pass
        with self.turn:
            slot.reading = False
            if data is None or slot.dead:
                with self.moving():
                    slot.into = data = None
                self._forget(slot)
            else:
                slot.ahead, slot.into = data, None
                self.aheads.append(slot)
            self.active.discard(slot)
            if slot.dead:
                self._bury(slot)
            self.turn.notify_all()


def work(spill: Spill) -> None:
    """What a thread does: reads before writes, and it ends when there was nothing for a while."""
    while True:
        with spill.turn:
            spill._sweep()
            if not (spill.reads or spill.writes or ending.is_set()):
                spill.idle += 1
                spill.turn.wait(IDLE)
                spill.idle -= 1
                spill._sweep()
            if ending.is_set() or not (spill.reads or spill.writes):
                spill.workers -= 1
                spill.turn.notify_all()
                return
            reading = bool(spill.reads)
            slot = spill.reads.popleft() if reading else spill.writes.popleft()
            spill.active.add(slot)
            if not reading:
                slot.state = WRITING
        (spill._read_ahead if reading else spill._write)(slot)
        del slot


def at_exit() -> None:
    """End the threads: one that the interpreter stops at its end may hold a lock that a destructor then waits for."""
    ending.set()
    for spill in list(spills):
        with spill.turn:
            spill.turn.notify_all()
            while spill.workers:
                spill.turn.wait(0.1)


atexit.register(at_exit)


forking: list[Spill] = []  # whose locks are held while this process forks


def before_fork() -> None:
    """No thread frees anything while the process forks."""
    forking[:] = list(spills)
    for spill in forking:
        spill.lock.acquire()


def in_parent() -> None:
    """What is in the file now stays there as long as the child may ask for it: later arrays go to a new one."""
    for spill in forking:
        if spill.file.used:
            spill.file.shared = True
            spill.file = Unlinked(spill.file.dir)
        spill.lock.release()
    forking.clear()


def in_child() -> None:
    """Here are no threads, and the file is the parent's: read what is there, write to one's own."""
    for spill in forking:
        spill.lock = threading.RLock()
        spill.turn = threading.Condition(spill.lock)
        spill.workers = spill.idle = 0
        for slot in (*spill.writes, *spill.active, *spill.reads):
            if slot.state in (QUEUED, WRITING):
                slot.state = KEPT
                spill.kept += slot.nbytes
            else:
                spill._forget(slot)
            slot.busy, slot.into = 0, None
        spill.queued = 0
        spill.writes, spill.reads, spill.active = deque(), deque(), set()
        spill.file.shared = True
        spill.file = Unlinked(spill.file.dir)
    forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=in_parent, after_in_child=in_child)
