"""What `native/memory.cpp` does, in Python, where there are no native kernels: slower, and every byte all the same.

NumPy tells Python's tracemalloc of every block of its arrays.  Tracemalloc runs here without the hooks by which it would
also follow Python's own objects, so that its sum and its peak are those of arrays, exactly.  While memory is recorded or
bounded, NumPy asks functions below for its blocks.  It frees them by its own function, for a free may come while an exception
is on its way, when no Python code may run: which blocks are gone is asked of tracemalloc, where its sum says that some are.

What NumPy allocates for itself while it works (buffers of casts and sorts) is counted here, and cannot be refused: below a
limit it may stand out by so much.

NumPy tells tracemalloc of blocks that it did not get, too: as at address 0, where they are taken off before its sum is read. Its
peak is then of no use. While NumPy asks here, the peak is therefore kept here; else it is, after a block that
NumPy's own allocator refused, the most that was seen when somebody asked.
"""

from __future__ import annotations

import _thread
import ctypes
import itertools
import os
import sys
import threading
import tracemalloc
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns as clock
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array

NUMPY = 389047  # NumPy's domain of tracemalloc
ALLOC, FREE, CATEGORY = range(3)
TIME, BLOCK, ADDRESS, SIZE, VALUE, STACK, LABEL, THREAD, ACTION, KIND = range(10)  # places in an event
_p, _size = ctypes.c_void_p, ctypes.c_size_t
_Malloc = ctypes.PYFUNCTYPE(_p, _p, _size)
_Calloc = ctypes.PYFUNCTYPE(_p, _p, _size, _size)
_Realloc = ctypes.PYFUNCTYPE(_p, _p, _p, _size)
_track = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_uint, _size, _size)(("PyTraceMalloc_Track", ctypes.pythonapi))
_untrack = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_uint, _size)(("PyTraceMalloc_Untrack", ctypes.pythonapi))


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", _p), ("malloc", _p), ("calloc", _p),
                ("realloc", _p), ("free", _p)]  # fmt: skip


class Block:
    """A block that is alive, of a recording."""

    __slots__ = ("category", "label", "number", "size", "stack")

    def __init__(self, number: int, size: int, stack: int = -1):
        self.number, self.size, self.stack, self.label, self.category = number, size, stack, -1, 0


def trace() -> str:
    """Let tracemalloc follow NumPy's blocks and nothing else; what is in the way, or ""."""
    if tracemalloc.is_tracing():
        return (
            "tracemalloc is running, which is needed to count arrays without native kernels: stop it before the import"
        )
    api, former = ctypes.pythonapi, [(_p * 5)() for _ in range(3)]
    for domain, allocator in enumerate(former):
        api.PyMem_GetAllocator(domain, allocator)
    tracemalloc.start(1)
    for domain, allocator in enumerate(former):
        api.PyMem_SetAllocator(domain, allocator)
    tracemalloc.clear_traces()
    return ""


class TracedLibrary:
    """The functions of `allocator.Library`, in Python.

    replace: has NumPy use the handler at an address; former: the address of NumPy's own.
    """

    def __init__(self, replace: Callable[[int], Any], former: int):
        self.replace, self.former = replace, former
        own = Handler.from_address(former)
        self.default = (_Malloc(own.malloc), _Calloc(own.calloc), _Realloc(own.realloc))
        self.context = own.context
        # Arrays may outlive everything: what NumPy was given is never let go.
        self.given = (_Malloc(self.malloc), _Calloc(self.calloc), _Realloc(self.realloc))
        addresses = [ctypes.cast(function, _p) for function in self.given]
        self.handler = Handler(b"rushlight", 1, own.context, *addresses, own.free)
        self.most, self.room = 0, None  # type: tuple[int, Any]
        self.recording = False
        self.past = 0  # a peak from before tracemalloc's was set back
        self.listening = False  # whether NumPy asks here
        self.top = 0  # the peak since it does
        self.refused = True  # whether NumPy may have told tracemalloc of a block that it did not get
        self.turn = threading.RLock()  # of the thread that looks whether there is room, until its block is counted
        os.register_at_fork(after_in_child=self.after_fork)
        self.asides: dict[
            int, tuple[int, set[int]]
        ] = {}  # by thread that makes what does not count: the peak, and that
        self.making: set[int] = set()  # threads that make room
        self.error: BaseException | None = None  # of the functions that NumPy calls
        self.clear(1, 0)
        find = ctypes.pythonapi._PyTraceMalloc_GetTraceback
        find.restype, find.argtypes = ctypes.py_object, [ctypes.c_uint, _size]
        self.traceback: Any = find

    # Totals -----------------------------------------------------------------------------------------------

    def traced(self) -> tuple[int, int]:
        """Bytes of arrays, now and at most.  RuntimeError where somebody stopped tracemalloc."""
        if not tracemalloc.is_tracing():
            raise RuntimeError(
                "memory is no longer counted: without native kernels that is done by tracemalloc, which was stopped"
            )
        now = self.now()
        return now, max(now, self.past, self.top if self.listening else tracemalloc.get_traced_memory()[1])

    def now(self) -> int:
        """Bytes of arrays now.  What NumPy was refused last is no longer among them."""
        before = now = tracemalloc.get_traced_memory()[0]
        if self.refused:
            _untrack(NUMPY, 0)
            now = tracemalloc.get_traced_memory()[0]
        if now != before:
            self.past = max(self.past, self.top, now)
            tracemalloc.reset_peak()
        return now

    def totals(self, out: Any) -> None:
        """Bytes now and at most, blocks; how many there ever were nobody counts."""
        out[0], out[1] = self.traced()
        out[2] = out[3] = out[4] = -1

    def blocks(self) -> int:
        """Blocks alive."""
        import _tracemalloc

        return len(_tracemalloc._get_traces())

    def reset_peak(self) -> None:
        """Let the peak be what is there now."""
        self.past = self.top = 0
        tracemalloc.reset_peak()

    def aside(self, on: int) -> int:
        """As the native one: blocks are no longer counted when the thread is done with them, and the peak is what it was."""
        me = threading.get_ident()
        former = me in self.asides
        if on and not former:
            self.settle()
            self.asides[me] = self.traced()[1], set()
        elif not on and former:
            (self.past, made), self.top = self.asides.pop(me), 0
            for address in made:
                _untrack(NUMPY, address)
            tracemalloc.reset_peak()
            self.settle()
        self.listen()
        return int(former)

    def exact(self, on: int) -> None:
        """Nothing: NumPy's allocator keeps no large blocks."""

    def adopt(self, address: int, size: int, category: int) -> None:
        """A block that was alive before; counted if it was not."""
        if self.traceback(NUMPY, address) is None:
            _track(NUMPY, address, size)
        if self.recording and address not in self.alive:
            self.enter(address, size)
            self.unknown -= size
        if address in self.alive:
            self.alive[address].category = category

    def limit(self, most: int, room: object) -> None:
        """Ask `room` for the bytes that are too many where arrays would take more than `most`; 0: no limit."""
        self.most, self.room = most, room
        self.listen()

    def listen(self) -> None:
        """Stand between NumPy and its allocator while there is something to do there."""
        wanted = bool(self.recording or self.most or self.asides)
        if wanted != self.listening:
            self.past, self.top, self.listening = self.traced()[1], 0, wanted
            self.refused = not wanted  # else it is known here
            tracemalloc.reset_peak()
        self.replace(ctypes.addressof(self.handler) if wanted else self.former)

    def after_fork(self) -> None:
        """The thread whose turn it was may not be there any more."""
        self.turn = threading.RLock()

    # What NumPy asks ----------------------------------------------------------------------------------------

    def malloc(self, context: int | None, size: int) -> int | None:
        """A block."""
        return self.made(size, self.default[0], context, size)

    def calloc(self, context: int | None, count: int, each: int) -> int | None:
        """A block of zeros."""
        return self.made(count * each, self.default[1], context, count, each)

    def realloc(self, context: int | None, block: int | None, size: int) -> int | None:
        """A block of another size: the former is gone."""
        former = self.died(block) if self.recording and block else None
        gone = former.size if former else 0
        found = self.made(size, self.default[2], context, block, size, gone=gone, new=not block)
        if found is None and former is not None:
            self.event(ALLOC, block or 0, self.enter(block or 0, former.size, former.stack))
        return found

    def made(self, size: int, make: Any, *args: object, gone: int = 0, new: bool = True) -> int | None:
        """A block from NumPy's own allocator, unless the limit forbids it; recorded.  Raises nothing: nobody would hear it.

        gone: bytes of the block that it takes the place of, where they are known; new: whether there is no such block.
        """
        found, most = None, self.most  # type: int | None, int
        try:
            found = self.counted(size, make, args, new, most)
            if found is None and most and self.asked(size):
                found = self.counted(size, make, args, new, most)
            aside = self.asides.get(threading.get_ident()) if self.asides else None
            if found and aside is not None:
                aside[1].add(found)
            elif found and self.recording:
                self.born(found, size, gone + (size if most and new else 0))
        except KeyboardInterrupt:
            _thread.interrupt_main()  # again, as soon as the array is there
        except BaseException as error:
            self.error = error
        if found is None and (not most or self.now() + size <= most):
            found = make(*args)
        self.refused = self.refused or not found
        return found

    def asked(self, size: int) -> bool:
        """Whether there may be so many bytes more by now: after pages were sent away, if there were too many."""
        me = threading.get_ident()
        over = self.now() + size - self.most
        if over > 0:
            if me in self.making or self.room is None:
                return False
            self.making.add(me)
            try:
                self.room(over)
            finally:
                self.making.discard(me)
        return True

    def counted(self, size: int, make: Any, args: tuple[object, ...], new: bool, most: int) -> int | None:
        """A block, unless it would be too much for a limit.  Below one it counts before another thread looks whether there is room for its own.

        A thread waits for that no longer than a second: what the other runs in between (finalizers of what is garbage) may
        wait for this one.
        """
        waited = bool(most) and self.turn.acquire(timeout=1)
        try:
            now = self.now()
            if most and now + size > most:
                return None
            found: int | None = make(*args)
            if found:
                self.top = max(self.top, now + size if new else now)
                if most and new:
                    _track(NUMPY, found, size)
            return found
        finally:
            if waited:
                self.turn.release()

    # Recording ----------------------------------------------------------------------------------------------

    def clear(self, events: int, depth: int) -> None:
        """Forget what was recorded."""
        self.ring: deque[list[int]] = deque(maxlen=events)
        self.written = self.numbers = 0
        self.alive: dict[int, Block] = {}
        self.left: list[list[int]] = []
        self.stacks: dict[tuple[Any, ...], int] = {}
        self.depth = depth
        self.error = None
        self.known = self.unknown = 0  # bytes of blocks that are in `alive`, and of others

    def record(self, events: int, depth: int) -> None:
        """Start anew with room for so many events and stacks of so many lines; 0 events: stop, keeping what there is."""
        if not events and self.recording:
            self.settle()
            self.left = self.living()
        self.recording = bool(events)
        if events:
            self.clear(events, depth)
            self.unknown = self.traced()[0]
        self.listen()

    def number(self) -> int:
        """The next block's number."""
        self.numbers += 1
        return self.numbers - 1

    def event(self, action: int, address: int, block: Block, value: int = 0, since: int = 0) -> None:
        """Note an event of a block."""
        self.written += 1
        stack = -1 if action == ALLOC and block.stack < 0 else block.stack
        self.ring.append([since or clock(), block.number, address, block.size, value, stack,
                          block.label, threading.get_ident() & 0x7FFFFFFF, action, block.category])  # fmt: skip

    def born(self, address: int, size: int, gone: int = 0) -> None:
        """A birth.  gone: bytes that tracemalloc counts and that were not there before: of this block, or that of which it takes the place."""
        self.settle(gone)
        self.died(address)
        self.event(ALLOC, address, self.enter(address, size, self.stack()))

    def settle(self, gone: int = 0) -> None:
        """Note the deaths of what is no longer there: the youngest first, until the bytes are those that tracemalloc has."""
        if not self.recording:
            return
        now = self.now() - gone
        extra, dead = self.known + self.unknown - now, []
        for address, block in reversed(self.alive.items()) if extra > 0 else ():
            if self.traceback(NUMPY, address) is None:
                dead.append(address)
                extra -= block.size
                if extra <= 0:
                    break
        for address in dead:
            self.died(address)
        if extra > 0:  # older than the recording
            self.event(FREE, 0, Block(self.number(), extra))
        self.unknown -= extra  # or made while this thread looked aside

    def died(self, address: int) -> Block | None:
        """A block is gone; it, if it was known."""
        block = self.alive.pop(address, None)
        if block is not None:
            self.known -= block.size
            self.event(FREE, address, block)
        return block

    def enter(self, address: int, size: int, stack: int = -1) -> Block:
        """A block is known from now on."""
        block = self.alive[address] = Block(self.number(), size, stack)
        self.known += size
        return block

    def stack(self) -> int:
        """The number of the stack that is running."""
        frame: Any = sys._getframe(4)  # behind those of this class
        lines: list[Any] = []
        while frame is not None and len(lines) < self.depth:
            lines.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        return self.stacks.setdefault(tuple(lines), len(self.stacks)) if self.depth else -1

    def label(self, start: int, label: int, category: int) -> int:
        """Say of the blocks that this thread made since `start` who made them; whether there were any."""
        self.settle()
        me, some = threading.get_ident() & 0x7FFFFFFF, 0
        for e in reversed(self.ring):
            if e[ACTION] > FREE:
                continue
            if e[TIME] < start:
                break
            if e[THREAD] != me or e[LABEL] != -1:
                continue
            some, e[LABEL], e[KIND] = 1, label, e[KIND] or category
            block = self.alive.get(e[ADDRESS])
            if block is not None and block.number == e[BLOCK] and block.label == -1:
                block.label, block.category = label, block.category or category
        return some

    def category(self, array: Array, category: int, keep: int) -> None:
        """The category of an array's block from now on: unless it is one of those whose bits are set in `keep`."""
        address = array.__array_interface__["data"][0]
        block = self.alive.get(address)
        if block is None or block.category == category or keep >> block.category & 1:
            return
        self.event(CATEGORY, address, block, category)
        block.category = category

    def mark(self, action: int, value: int, since: int) -> None:
        """A phase or a mark of the user, now or since a time of the clock."""
        self.event(action, 0, Block(-1, 0), value, since)

    def forget(self) -> None:
        """Drop the events."""
        self.record(0, 0)
        self.clear(1, 0)

    def living(self) -> list[list[int]]:
        """A birth for every block alive."""
        return [
            [0, b.number, address, b.size, 0, b.stack, b.label, 0, ALLOC, b.category]
            for address, b in list(self.alive.items())  # at once: other threads go on
        ]

    def alive_now(self, dtype: np.dtype[Any]) -> Any:
        """As `allocator.alive`, from any thread: what died since the last event may be among it."""
        return np.array([(*e, 0) for e in self.living()], dtype)

    def stack_of(self, number: int) -> list[Any]:
        """The stack of a number."""
        return list(next(itertools.islice(self.stacks, number, None)))

    def read(self, dtype: np.dtype[Any]) -> tuple[Any, int, Any, list[Any]]:
        """As `allocator.read`."""
        self.settle()
        if self.error is not None:
            raise RuntimeError("the recording is not complete: recording a block failed") from self.error
        events, alive = list(self.ring), self.living() if self.recording else self.left
        stacks = [list(lines) for lines in self.stacks]
        rows = np.array([(*e, 0) for e in (*events, *alive)] or [], dtype)
        return rows[: len(events)], self.written - len(events), rows[len(events) :], stacks
