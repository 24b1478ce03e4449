"""The pager: which arrays are in memory and which on disk, so that all together stay below a limit.

It is asked for room by the allocator, in the middle of an allocation that would pass the limit, and sends away what is
used latest: to disk, or, where computing it again takes less time than writing and reading did so far, nowhere.
Backward uses what forward saved in reverse, so of saved tensors that is the oldest.  Parameters are used in forward and
then in backward in reverse: in forward the oldest in use goes first, in backward the newest.  State of the optimizer is
used once a step, in the same order each time: the newest in use goes first.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.kernels import allocator
from rushlight.memory.budgets import pages
from rushlight.memory.budgets.paged import KINDS as PAGEABLE
from rushlight.memory.budgets.paged import PAGED, adopt, complete, in_memory, release
from rushlight.memory.budgets.pages import Kept, Page, SavedPage, View, whole
from rushlight.memory.counting.holders import collected_of
from rushlight.memory.recordings.recording import CATEGORIES
from rushlight.nn.parameter import Parameter
from rushlight.optim.optimizer import Optimizer
from rushlight.storage import arrive, leave, root_of, storage_of
from rushlight.stores.calls import Recipes
from rushlight.stores.errors import StoreError, frameless
from rushlight.stores.files import Spill
from rushlight.stores.region import Watch
from rushlight.tensor import LEAF, Tensor

STATE, SAVED, GRADIENT, PARAMETER = "optimizer_state", "activation", "gradient", "parameter"
AHEAD = 24  # saved tensors that may be read ahead
FOLLOWERS = 4  # other pages that may
OPERATORS = 4  # that may run again for one saved tensor
DISK = 2e-9  # seconds for a byte to be written and read, until some were
KINDS = (STATE, SAVED, GRADIENT, PARAMETER)  # in the order in which they are sent away


PARAMETERS = (Parameter, PAGED[Parameter])
_ended: weakref.WeakSet[Any] = weakref.WeakSet()  # pagers with pages that may still be on disk


class Pager:
    """Pages by kind, the latest used last, and the disk.

    It observes the operators of the thread that it serves, to know how results are computed again.

    moved_out, moved_in: bytes by kind, written and read; again: bytes that were computed again; seconds: spent on all that;
    away: bytes of pages that live and are not in memory; coming: of those that are being brought back. Of saved
    tensors, saved_away: the same; needed: the most that had to be away at once; ready: bytes that were written ahead
    of need and are in memory still.
    """

    passive = looks = False

    def __init__(self, limit: int, spill: Spill, slack: int):
        self.limit, self.spill, self.slack = limit, spill, slack
        spill.moving = partial(moving, weakref.ref(self))
        self.pages: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}  # id: weak reference
        self.roots: dict[int, Any] = {}  # id of an array: weak reference to the page of a saved tensor
        self.tensors: dict[int, Any] = {}  # by id: weak references to what was adopted
        self.lock = threading.RLock()
        self.moved_out, self.moved_in = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        self.recipes = Recipes(OPERATORS)
        self.seconds, self.away, self.demand, self.least, self.asked, self.again = 0.0, 0, 0, 0, 0, 0
        self.saved_away = self.needed = self.ready = self.coming = 0
        self.latest: dict[
            tuple[str, bool], Any
        ] = {}  # of each kind, in backward or not: the page brought back last, weakly
        self.growing = True  # whether what is needed may grow: until backward begins
        self.error: Exception | None = None  # what moving failed with
        self.interrupt: BaseException | None = None  # what a signal's handler raised while memory was being made
        self.depth = 0
        self.closed = False
        self.thread, self.refused = threading.current_thread(), dict[str, None]()  # its own; others that found no room
        self.saved: dict[int, Any] = {}  # number of a page of a saved tensor: weak reference
        self.count = self.behind = 0  # pages of saved tensors ever; the number of the first that was not written yet
        # of optimizers: which state of how many parameters was there when last looked at
        self.known: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        self.asleep = True  # whether nothing was adopted yet
        self.guests = list[Any]()  # what files gave until then, weakly
        self.wake: Any = None  # what is called whenever memory is short: see `waking`
        for other in list(_ended):
            self.take_over(other)

    def take_over(self, other: Pager) -> None:
        """Take the pages of a pager that ended: what is on disk stays there until it is used."""
        with other.lock:
            for kind in KINDS:
                for reference in (
                    sorted(other.pages[kind].values(), key=number) if kind == SAVED else [*other.pages[kind].values()]
                ):
                    page = reference()
                    if page is not None:
                        page.belong(kind, self)
            self.roots.update(other.roots)
            self.tensors.update(other.tensors)
            other.roots, other.tensors = {}, {}
        _ended.discard(other)

    # Pages -----------------------------------------------------------------------------------------

    def add(self, page: Any) -> None:
        """A page begins to live."""
        reference = self.pages[page.kind][id(page)] = weakref.ref(page)
        if page.kind == SAVED:
            page.number, self.count = self.count, self.count + 1
            self.saved[page.number] = reference

    def drop(self, page: Any) -> None:
        """A page ceases to live."""
        self.pages[page.kind].pop(id(page), None)
        if page.kind == SAVED:
            self.saved.pop(page.number, None)
            reference = None if page.data is None else self.roots.get(id(root_of(page.data)))
            if reference is not None and reference() is None:
                del self.roots[id(root_of(page.data))]
            self.not_ready(page)
        if page.data is None:
            self.note_away(page, -page.nbytes)

    def use(self, page: Page) -> Any:
        """The array of a page, brought back if it was away; it is the latest used.

        Under the lock, as sending is: an array is either held by who asked for it, or can be sent away.
        """
        with self.lock:
            order = self.pages[page.kind]
            mine = order.pop(id(page), None)
            if mine is not None:
                order[id(page)] = mine
            if page.data is None:
                start = self.clock()
                try:
                    self.bring(page)
                    found = page.data  # held: what follows may send others away
                    if page.mutable:
                        self.follow(page)
                finally:
                    self.paid(start)
                return found
            return page.data

    def bring(self, page: Any) -> None:
        """Read a page, or compute it again."""
        piece, data = page.piece, None
        self.note_peak()
        self.coming += page.nbytes
        try:
            data = page.read() if piece is not None else page.computed()
        finally:
            with self.spill.turn, self.spill.moving():  # no other thread counts it twice
                self.coming -= page.nbytes
                if data is not None:
                    page.data = data
                    self.count_away(page, -page.nbytes)
        allocator.library().category(root_of(data), CATEGORIES.index(page.kind), 0)
        if page.waiting:
            waiting, page.waiting = page.waiting, []
            arrive(data, waiting)
        del data
        if page.kind == SAVED:
            self.growing = False
        if piece is None:
            self.again += page.nbytes
        else:
            self.moved_in[page.kind] += page.nbytes
        if not page.mutable:
            self.roots[id(root_of(page.data))] = weakref.ref(page)
            self.read_ahead(page)
        elif page.kind != PARAMETER:  # an optimizer changes it: what is on disk will not be asked for
            page.piece = None
            piece.free()

    def follow(self, page: Page) -> None:
        """Note which page came after which; begin to read those that came after this one the last time.

        Optimizers go through parameters and state in one order each step, forward and backward through parameters.
        """
        backward = modes.run is not None
        before = self.latest.get((page.kind, backward), lambda: None)()
        if before is not None:
            before.then[backward] = weakref.ref(page)
        self.latest[page.kind, backward] = weakref.ref(page)
        following = page.then[backward]()
        for _ in range(FOLLOWERS):
            if following is None or following is page:
                return
            if following.data is None and not self.begin_to_read(following):
                return
            following = following.then[backward]()

    def begin_to_read(self, page: Page) -> bool:
        """Begin to read a page where there is room; for state, send others away so that there will be once they are written."""
        goal = self.limit - self.slack - page.nbytes
        if used() <= goal:
            return page.piece is not None and bool(page.piece.prefetch())
        goal -= page.nbytes  # the next to be brought back may take that room itself
        if page.kind == STATE and used() - self.spill.queued > goal:
            self.free(goal + self.spill.queued, False)
        return False

    def read_ahead(self, page: SavedPage) -> None:
        """Begin to read the saved tensors that backward uses after this one, as far as there is room."""
        room = self.limit - used() - 2 * self.slack
        for number in range(page.number - 1, max(page.number - AHEAD, -1), -1):
            reference = self.saved.get(number)
            other = reference() if reference is not None else None
            if other is None or other.data is not None or other.piece is None:
                continue
            room -= other.nbytes
            if room < 0 or not other.piece.prefetch():
                return

    def write_behind(self) -> None:
        """Begin to write the saved tensors that will have to go first, so that dropping them takes no time.

        As many as had to be away in earlier steps; while that is not known yet, a few ahead of need.
        """
        spill = self.spill
        while self.behind < self.count:
            reference = self.saved.get(self.behind)
            page = reference() if reference is not None else None
            if page is not None and page.data is not None and not self.free_to_drop(page):
                wanted = max(self.needed - self.saved_away, spill.limit // 2 if self.growing else 0) - self.ready
                if spill.queued + page.nbytes > spill.limit or wanted < page.nbytes:
                    return
                try:
                    self.write(page)
                    page.ready, self.ready = True, self.ready + page.nbytes
                except StoreError as error:  # not needed yet: it is told when there is no room without
                    self.error = frameless(error)
            self.behind += 1

    def write(self, page: Page) -> None:
        """Write a page, or begin to."""
        page.piece = page.put(self.spill)
        self.moved_out[page.kind] += page.nbytes

    def not_ready(self, page: Any) -> None:
        """A saved tensor that was written ahead of need is dropped, dies, or what was written is void."""
        if page.ready:
            page.ready, self.ready = False, self.ready - page.nbytes

    def note_away(self, page: Page, count: int) -> None:
        """Bytes of a page go away, or, less than 0, come back."""
        with self.spill.moving():
            self.count_away(page, count)

    def count_away(self, page: Page, count: int) -> None:
        """The same, where others have noted what there was before."""
        self.away += count
        if page.kind == SAVED:
            self.saved_away += count

    def send(self, page: Any) -> int:
        """Write a page, unless that need not be, and drop its array; the bytes that frees, once it is written."""
        if page.mutable and page.piece is not None and not page.unchanged:
            piece, page.piece = page.piece, None
            piece.free()
        if not self.free_to_drop(page):
            self.write(page)
        if page.kind == SAVED:
            self.not_ready(page)
            self.roots.pop(id(root_of(page.data)), None)
        page.waiting = leave(page.data)
        with self.spill.turn, self.spill.moving():
            page.data = None
            self.count_away(page, page.nbytes)
        return int(page.nbytes)

    def outdate(self, page: SavedPage, version: int) -> None:
        """The memory of a page was changed in place, and saved again: nobody will get what it was."""
        page.later, page.data = version, None
        self.not_ready(page)
        self.note_away(page, page.nbytes)

    def free_to_drop(self, page: Any) -> bool:
        """Whether a page is on disk, or on its way there, or quicker computed again than brought there and back."""
        if page.piece is not None or page.kind != SAVED or page.again is None:
            return page.piece is not None
        return bool(page.again.seconds < page.nbytes * self.spill.seconds_per_byte(DISK))

    def clock(self) -> float:
        """The time, if this is not part of what is timed already, else 0."""
        self.depth += 1
        return perf_counter() if self.depth == 1 else 0.0

    def paid(self, start: float) -> None:
        """Add the time since `clock` gave `start`."""
        self.depth -= 1
        if start:
            self.seconds += perf_counter() - start

    # Room ------------------------------------------------------------------------------------------

    def make_room(self, over: int) -> bool:
        """Send pages away until `over` bytes are free, and some more, or nothing else can be sent; whether they are."""
        if threading.current_thread().name == "rushlight.stores":
            return False  # a thread that reads ahead is refused: it cannot wait for what it is to do itself
        with self.lock:
            start = self.clock()
            goal = used() - over
            try:
                return self.go_below(goal)
            except Exception as error:  # nothing may leave the allocator: the refusal is explained later
                self.error = frameless(error)
            except BaseException as interrupt:  # nor this: it is raised when an operator begins, or at the end
                self.interrupt = interrupt
                return self.go_below(goal)
            finally:
                self.paid(start)
        return False

    def go_below(self, goal: int) -> bool:
        """Send pages away until no more than `goal` bytes are in use; note how many are, if they cannot be moved."""
        self.asked += 1
        self.note_peak(self.limit - goal)
        wake = self.wake
        if wake is not None:  # the budget may have ended meanwhile, in another thread
            wake()
        reached = self.reach(goal)
        if not reached:
            self.scan()
            if wake is not None:
                wake(again=True)
            reached = self.reach(goal)
            if not reached:
                least = self.limit + used() - goal
                self.least = max(self.least, least + least // 32)  # the next that asks wants more
                if threading.current_thread() is not self.thread:
                    self.refused[threading.current_thread().name] = None
        if self.saved_away > self.needed:
            self.needed, self.growing = self.saved_away, True
        return reached

    def note_peak(self, more: int = 0) -> bool:
        """Note the most bytes that there would have been without a limit since what is away changed, or now with `more`; whether it was.

        Destructors come here: where another thread has the lock, which may wait for this one, it is left to the next.
        """
        lock = self.spill.lock
        if self.closed or not lock.acquire(blocking=False):
            return False
        try:  # with the lock, so that no page begins or ends to move meanwhile
            demand = max(allocator.peak_since(), used() + more) + self.away - self.coming
            if demand > self.demand:
                self.demand = max(self.demand, demand - self.twice())
            return True
        finally:
            lock.release()

    def twice(self) -> int:
        """Bytes that count as away and as in use, of pages on their way to disk or read ahead, or that nobody needs any more."""
        spill = self.spill
        if not (spill.queued or spill.ahead or spill.kept):
            return 0
        pages = (reference() for kind in KINDS for reference in list(self.pages[kind].values()))
        return spill.unwanted + sum(int(page.nbytes) for page in pages if page is not None and page.moving)

    def begin(self, *call: Any) -> Any:
        """An operator is called."""
        if self.interrupt is not None:
            interrupt, self.interrupt = self.interrupt, None
            try:
                raise interrupt
            finally:
                del interrupt  # or it and this frame would hold each other, and the callers' arrays
        return self.recipes.begin(*call)

    def end(self, *call: Any) -> None:
        """It returned."""
        self.recipes.end(*call)

    def reach(self, goal: int) -> bool:
        """Send idle pages away until no more than `goal` bytes are in use, and some less; whether that came about.

        First those that need not be written: they are on disk, on their way there, or quick to compute again.  What was
        read ahead goes last: it is used next.
        """
        least = goal - self.slack
        self.free(least, True)
        if used() > goal and self.spill.queued:
            self.spill.flush(lambda: used() <= goal)
            self.free(least, True)
        if used() > goal:
            self.free(least, False)
            self.spill.flush(lambda: used() <= goal)
        if used() > goal and self.spill.ahead:
            self.spill.forget_ahead()
        return used() <= goal

    def free(self, goal: int, written: bool) -> None:
        """Send idle pages away, those used latest in the future first, until no more than `goal` bytes are in use.

        written: only those that need not be written.
        """
        left = used() - goal
        for kind in (SAVED,) if written else KINDS:
            references = list(self.pages[kind].values())
            if self.newest_first(kind):
                references.reverse()
            for reference in references:
                if left <= 0:
                    return
                page = reference()
                if page is not None and page.idle and (not written or self.free_to_drop(page)):
                    left -= self.send(page)

    def newest_first(self, kind: str) -> bool:
        """Whether, of a kind, what was used last is used again the latest."""
        return kind == STATE or (kind == PARAMETER and modes.run is not None)

    # What is to be paged ---------------------------------------------------------------------------

    def adopt(self, tensor: Tensor, kind: str) -> None:
        """Let a tensor's array be sent away."""
        if type(tensor) in PAGEABLE and adopt(tensor, kind, self):
            key, tensors = id(tensor), self.tensors
            tensors[key] = weakref.ref(tensor, lambda _: tensors.pop(key, None))

    def guest(self, tensor: Tensor) -> None:
        """Adopt a tensor that a file gave."""
        if self.asleep:
            self.guests.append(weakref.ref(tensor))
        else:
            self.adopt(tensor, PARAMETER)

    def adopt_all(self) -> None:
        """Adopt whatever there is, for the first time."""
        self.asleep = False
        self.scan()
        for reference in self.guests:
            tensor = reference()
            if tensor is not None:
                self.adopt(tensor, PARAMETER)
        self.guests = []

    def scan(self) -> None:
        """Adopt all parameters, gradients and state of optimizers that there are."""
        for x in collected_of(Optimizer, Tensor):
            kind = type(x)
            if issubclass(kind, Optimizer):
                self.adopt_state(x, again=True)
            elif issubclass(kind, Tensor) and complete(x) and (kind in PARAMETERS or x._edge is LEAF):
                self.adopt(x, PARAMETER)
                if x._grad is not None:
                    self.adopt(x._grad, GRADIENT)

    def adopt_state(self, optimizer: Optimizer, again: bool = False) -> None:
        """Adopt what an optimizer keeps, if that is not what it was when last looked at, or to look once more."""
        kept = optimizer.__dict__.get("state")
        if self.asleep or not isinstance(kept, dict):  # it is being made
            return
        now = id(kept), len(kept)  # loading puts another dictionary there
        if not again and self.known.get(optimizer) == now:
            return
        self.known[optimizer] = now
        for state in list(kept.values()):
            for value in list(state.values()) if isinstance(state, dict) else ():
                self.adopt(value, STATE)

    def release(self) -> None:
        """Make tensors ordinary again: what is in memory now, the rest when it is asked for, so that no memory is taken."""
        self.closed = True
        for key, reference in list(self.tensors.items()):
            tensor = reference()
            if tensor is not None and type(tensor) not in PAGED and in_memory(tensor):
                release(tensor)
                del self.tensors[key]
        _ended.add(self)

    # Saved tensors: a pair of hooks --------------------------------------------------------------------

    def pack(self, tensor: Tensor) -> Any:
        """A saved tensor as a page; itself where it is small, a parameter, or memory of another's."""
        if tensor.__class__ not in PAGED or isinstance(tensor, Parameter) or tensor._edge is LEAF:
            return bare(tensor)
        array = tensor._held
        root = root_of(array)
        if root.nbytes < pages.SMALL or not whole(root):
            return bare(tensor)
        return Kept(self.page_of(root, tensor), None if array is root else View(array, root), tensor._bits, tensor)

    def page_of(self, root: Array, tensor: Tensor) -> SavedPage:
        """The page of a saved tensor's memory: that of another tensor on it, or a new one."""
        storage = storage_of(tensor)
        page = self.known_page(root)
        if page is not None:
            if page.version == storage.version:
                return page  # type: ignore[no-any-return]
            self.outdate(page, storage.version)
        page = SavedPage(root, SAVED, self, storage)
        self.roots[id(root)] = weakref.ref(page)
        hooks = modes.saved_hooks
        innermost = bool(hooks) and hooks[-1][0] == self.pack  # else hooks within made something else of a result
        page.compute_with(self.recipes.again(storage, page.version, tensor._held if innermost else None))
        self.recipes.learn(storage, page.version, page)
        if self.asked:
            with self.lock:
                self.write_behind()
        return page

    def known_page(self, root: Array) -> Any:
        """The page of a saved tensor's memory, None where there is none."""
        reference = self.roots.get(id(root))
        page = None if reference is None else reference()
        return page if page is not None and page.data is root else None

    def unpack(self, packed: Bare | Kept) -> Any:
        """The tensor again."""
        return packed.tensor() if packed.__class__ in (Kept, Bare) else packed


@contextmanager
def moving(reference: weakref.ref[Pager]) -> Iterator[None]:
    """Arrays begin or end to be away, or on their way, here: a pager notes how much there was before, and looks anew after."""
    pager = reference()
    noted = pager is not None and pager.note_peak()
    del pager
    yield
    if noted:
        allocator.peak_since()


def bare(tensor: Tensor) -> Any:
    """A tensor that stays as it is, and the version that it has."""
    if modes.mutation is not None or tensor._array.__class__ is not np.ndarray or tensor._inference:
        return tensor
    return Bare(tensor, Watch(tensor, storage_of(tensor), storage_of(tensor).version, modes.saving))


class Bare:
    """A saved tensor that is no page."""

    __slots__ = ("_tensor", "watch")

    def __init__(self, tensor: Any, watch: Watch):
        self._tensor, self.watch = tensor, watch

    def alive(self) -> Any:
        """Its memory."""
        return self._tensor._array

    def tensor(self) -> Any:
        """The tensor.  RuntimeError if it was changed in place since it was saved."""
        self.watch.check(tuple(self._tensor.shape))
        return self._tensor


def number(reference: Any) -> int:
    """The place in the order of saving of the page that a reference gives."""
    page = reference()
    return -1 if page is None else int(page.number)


def used() -> int:
    """Bytes in use."""
    return allocator.totals().bytes
