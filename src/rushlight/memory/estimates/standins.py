"""Arrays that have shape, strides and bytes but touch no memory, and the account of their births and deaths.

A stand-in is an ordinary NumPy array on pages that the operating system reserves and nobody writes to: views of it,
transposes and reshapes behave as on any array, and what does read it sees zeros.  Its life is counted by a weak
reference to the array that owns the pages, so nominal bytes rise and fall exactly as a real run's would.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.addresses import reserved
from rushlight.basics.arrays import Array
from rushlight.dispatch.keeping.unmade import is_outline
from rushlight.dispatch.shapes import order_of
from rushlight.memory.counting.holders import ACTIVATION, GRADIENT, INPUT, OPTIMIZER_STATE, PARAMETER, TEMPORARY
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, CATEGORY, FREE, PHASE, Recording
from rushlight.storage import root_of

LARGE = 1 << 16  # bytes from which on an array is a stand-in: smaller ones are real, and computed with
ALWAYS = 1 << 62  # events: after all there will be
KEPT = (PARAMETER, GRADIENT, OPTIMIZER_STATE, INPUT)


def standin(shape: Any, dtype: np.dtype[Any] | type[Any], order: tuple[int, ...] | None = None) -> Array:
    """An array of zeros that takes no memory where it would take much.

    order: its dimensions by decreasing stride; C order without.
    """
    shape, dtype = tuple(shape), np.dtype(dtype)
    laid = shape if order is None else tuple(shape[i] for i in order)
    count = math.prod(laid) * dtype.itemsize
    made = np.zeros(laid, dtype) if count < LARGE else np.ndarray(laid, dtype, pages(count))
    return made if order is None else made.transpose(np.argsort(order))


def pages(count: int) -> mmap.mmap:
    """So many bytes of addresses, without memory behind them until they are written to."""
    try:
        return reserved(count)
    except OSError as error:
        raise MemoryError(
            f"memory.estimate: the operating system refuses {count:,} bytes of addresses that no memory is behind "
            f"({error}); see ulimit -v and, on Linux, /proc/sys/vm/overcommit_memory, which must not be 2"
        ) from error


def like(array: Array) -> Array:
    """A stand-in laid out as `array`; small arrays are copied with their values."""
    if array.nbytes < LARGE:
        return np.array(array, order="K", subok=False)
    return standin(array.shape, array.dtype, order_of(array))


def owns(array: Array) -> bool:
    """Whether an array is the owner of its memory, not a view of another array's."""
    return not isinstance(array.base, np.ndarray)


class _Block:
    """A block that is alive: its number and bytes."""

    __slots__ = ("category", "number", "ref", "size")
    ref: Any  # weak, to the array that owns the memory

    def __init__(self, number: int, size: int, category: int):
        self.number, self.size, self.category = number, size, category


FORWARD_WORK, BACKWARD_WORK, STEP_WORK = range(3)  # what a call is part of; what a checkpoint runs again is forward


class Work(NamedTuple):
    """A call that a run would compute.

    moment: how many events there were when it began. kind: of forward, backward or the optimizer's step. flops: of products;
    bytes: read and written otherwise. operands: numbers of the blocks that have to be there.
    """

    moment: int
    kind: int
    operator: str
    flops: int
    bytes: int
    operands: tuple[int, ...]


class Tally:
    """Bytes alive, now and at the peak, every event, and what would be computed."""

    def __init__(self) -> None:
        self.live = self.peak = self.peak_event = 0
        self.blocks: dict[int, _Block] = {}
        self.events: list[tuple[int, int, int]] = []  # action, block, value
        self.sizes: list[int] = []
        self.makers: list[tuple[str, str]] = []  # operator and module of each block
        self.module = ""
        self.phase = 0
        self.by_phase: dict[int, int] = {}  # the most bytes alive in each
        self.works: list[Work] = []
        self.steps: list[tuple[int, int]] = []  # where each step began: events and calls
        self.held: dict[
            int, int
        ] = {}  # of blocks that somebody has beside who keeps them: how many events there were when he let go
        self.beside: dict[Any, Any] = {}  # what a node under way has fetched, and holds until it has run
        self.looking: Callable[[], object] | None = None  # called before each call

    def add(self, array: Array, operator: str = "", category: int = TEMPORARY) -> None:
        """Count an array's block, if it is not counted yet."""
        root = root_of(array)
        key = id(root)
        if key in self.blocks or not root.nbytes or is_outline(root):
            return
        block = _Block(len(self.sizes), root.nbytes, category)
        me = weakref.ref(self)

        def died(_: object) -> None:
            tally = me()
            if tally is not None:
                tally.remove(key)

        block.ref = weakref.ref(root, died)
        self.blocks[key] = block
        self.sizes.append(root.nbytes)
        self.makers.append((operator, self.module))
        self.events.append((ALLOC, block.number, category))
        self.grow(root.nbytes)

    def grow(self, count: int) -> None:
        """So many bytes more are alive."""
        self.live += count
        if self.live > self.by_phase.get(self.phase, 0):
            self.by_phase[self.phase] = self.live
        if self.live > self.peak:
            self.peak, self.peak_event = self.live, len(self.events) - 1

    def remove(self, key: int) -> None:
        """The block of the array with this id died."""
        block = self.blocks.pop(key, None)
        if block is not None:
            self.live -= block.size
            self.events.append((FREE, block.number, 0))

    def work(self, count: int, operator: str) -> None:
        """So many bytes were needed for a moment, by a kernel."""
        if count > 0:
            number = len(self.sizes)
            self.sizes.append(count)
            self.makers.append((operator, self.module))
            self.events.append((ALLOC, number, TEMPORARY))
            self.grow(count)
            self.live -= count
            self.events.append((FREE, number, 0))

    def begin_step(self) -> None:
        """One more step begins."""
        self.steps.append((len(self.events), len(self.works)))

    def hold(self, array: Array, until: int | None = None) -> None:
        """Somebody has an array's block, so that it cannot be sent away: until further notice, or now, `until` so many events."""
        block = self.blocks.get(id(root_of(array)))
        if block is not None:
            self.held[block.number] = ALWAYS if until is None else until

    def uses(self, arrays: Any) -> tuple[int, tuple[int, ...]]:
        """This moment, and the numbers of the blocks of arrays, and of what has to be there beside them."""
        if self.looking is not None:
            self.looking()
        there = [getattr(x, "_held", x) for x in (*arrays, *self.beside.values())]
        found = dict.fromkeys(self.blocks.get(id(root_of(x))) for x in there if isinstance(x, np.ndarray))
        return len(self.events), tuple([block.number for block in found if block is not None])

    def worked(self, kind: int, operator: str, flops: int, used: Any, arrays: tuple[Array | int, ...]) -> None:
        """A call of an operator ended that began at `used`: these arrays were read or written."""
        count = sum(x.nbytes for x in arrays if isinstance(x, np.ndarray))
        self.works.append(Work(used[0], kind, operator, flops, count, used[1]))

    def categorize(self, array: Array, category: int) -> None:
        """Say what a block is for: parameters and what is kept with them stay what they are."""
        block = self.blocks.get(id(root_of(array)))
        if block is None or block.category == category:
            return
        if category == ACTIVATION and block.category in KEPT:
            return
        if category == GRADIENT and block.category == PARAMETER:
            return
        block.category = category
        self.events.append((CATEGORY, block.number, category))

    def enter(self, phase: int) -> None:
        """A phase of the step begins."""
        self.phase = phase
        self.events.append((PHASE, -1, phase))
        self.grow(0)

    def begin(self) -> None:
        """Forget the peak, not what is alive."""
        self.peak, self.peak_event, self.by_phase = self.live, len(self.events) - 1, {self.phase: self.live}

    def most(self) -> list[int]:
        """The most bytes alive at once of each category."""
        most, now = [0] * len(CATEGORIES), [0] * len(CATEGORIES)
        of: dict[int, int] = {}
        for action, block, value in self.events:
            if block < 0:
                continue
            former = of.pop(block, None)
            if former is not None:
                now[former] -= self.sizes[block]
            if action != FREE:
                of[block] = value
                now[value] += self.sizes[block]
                most[value] = max(most[value], now[value])
        return most

    def at_peak(self) -> dict[str, int]:
        """Bytes by category when most were alive."""
        return self.sums(lambda block, category: CATEGORIES[category])

    def modules_at_peak(self) -> dict[str, int]:
        """Bytes of activations by module when most were alive."""
        return self.sums(lambda block, category: self.makers[block][1] if category == ACTIVATION else None)

    def sums(self, name: Callable[..., Any]) -> dict[str, int]:
        """Bytes alive at the peak by `name(block, category)`, without those that it names None; the largest first."""
        alive: dict[int, int] = {}
        for action, block, value in self.events[: self.peak_event + 1]:
            if action in (ALLOC, CATEGORY):
                alive[block] = value
            elif action == FREE:
                del alive[block]
        found: dict[str, int] = {}
        for block, category in alive.items():
            key = name(block, category)
            if key is not None:
                found[key] = found.get(key, 0) + self.sizes[block]
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def recording(self) -> Recording:
        """The events as a recording, one a microsecond."""
        operators, modules = ({name: k for k, name in enumerate(dict.fromkeys(column)) if name}
                              for column in zip(*self.makers, strict=True))  # fmt: skip
        table = np.array(self.events, np.int64).reshape(-1, 3)
        count = len(self.sizes)
        names = [list(operators), list(modules)]
        places = [{name: k for k, name in enumerate(column)} for column in names]
        made_by = np.array([[places[0].get(o, -1), places[1].get(m, -1)] for o, m in self.makers], np.int32)
        size = np.array(self.sizes, np.int64)
        return Recording(
            time=np.arange(len(table), dtype=np.int64), action=table[:, 0].astype(np.uint8), block=table[:, 1],
            value=table[:, 2], address=np.cumsum(size) - size, size=size, stack=np.full(count, -1, np.int32),
            operator=made_by[:, 0].copy(), module=made_by[:, 1].copy(), initial_category=np.zeros(0, np.uint8),
            operators=names[0], modules=names[1],
        )  # fmt: skip
