"""The pager: which arrays are in memory and which on disk, so that all together stay below a limit.

It is asked for room by the allocator, in the middle of an allocation that would pass the limit, and sends away what is
used latest.  Backward uses what forward saved in reverse, so of saved tensors that is the oldest.  Parameters are used in
forward and then in backward in reverse: in forward the oldest in use goes first, in backward the newest.  State of the
optimizer is used once a step, in the same order each time: the newest in use goes first.
"""

from __future__ import annotations

import gc
import threading
import weakref
from time import perf_counter
from typing import Any

import numpy as np

from rushlight.kernels import allocator
from rushlight.memory.pages import PAGED, Kept, Page, View, adopt, in_memory, release, whole
from rushlight.nn.parameter import Parameter
from rushlight.optim.optimizer import Optimizer
from rushlight.state import modes
from rushlight.storage import root_of
from rushlight.stores.files import Spill
from rushlight.tensor import LEAF, Tensor, wrap

STATE, SAVED, GRADIENT, PARAMETER = "optimizer_state", "activation", "gradient", "parameter"
AHEAD = 24  # saved tensors that may be read ahead
KINDS = (STATE, SAVED, GRADIENT, PARAMETER)  # in the order in which they are sent away


class Pager:
    """Pages by kind, the latest used last, and the disk.

    moved_out, moved_in: bytes by kind; seconds: spent on it; away: bytes on disk of pages that live.
    """

    def __init__(self, limit: int, spill: Spill, slack: int):
        self.limit, self.spill, self.slack = limit, spill, slack
        self.pages: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}  # id: weak reference
        self.roots: dict[int, Any] = {}  # id of an array: weak reference to the page of a saved tensor
        self.tensors: list[Any] = []  # weak references to what was adopted
        self.lock = threading.RLock()
        self.moved_out, self.moved_in = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        self.seconds, self.away, self.demand, self.least, self.asked = 0.0, 0, 0, 0, 0
        self.error: BaseException | None = None
        self.depth = 0
        self.closed = False
        self.saved: dict[int, Any] = {}  # number of a page of a saved tensor: weak reference
        self.count = self.behind = 0  # pages of saved tensors ever; the number of the first that was not written yet
        self.known: dict[int, int] = {}  # of optimizers by id: how many parameters had state when last looked at

    # Pages -----------------------------------------------------------------------------------------

    def add(self, page: Page) -> None:
        """A page begins to live."""
        reference = self.pages[page.kind][id(page)] = weakref.ref(page)
        if page.kind == SAVED:
            page.number, self.count = self.count, self.count + 1
            self.saved[page.number] = reference

    def drop(self, page: Page) -> None:
        """A page ceases to live."""
        self.pages[page.kind].pop(id(page), None)
        if page.kind == SAVED:
            del self.saved[page.number]
        if page.array is None:
            self.away -= page.nbytes

    def use(self, page: Page) -> None:
        """A page is asked for: bring it back if it was away, and note that it is the latest used."""
        order = self.pages[page.kind]
        mine = order.pop(id(page), None)
        if mine is not None:
            order[id(page)] = mine
        if page.array is None:
            self.bring(page)

    def bring(self, page: Page) -> None:
        """Read a page."""
        start = self.clock()
        piece = page.piece
        plain = piece.axes is None and not piece.in_memory
        array = piece.get(out=np.empty(piece.shape, piece.dtype)) if plain else piece.get()
        with self.lock:
            if page.array is None:
                page.array = array
                self.away -= page.nbytes
                self.moved_in[page.kind] += page.nbytes
            if page.mutable:
                page.piece = None
        if page.mutable:
            piece.free()
        else:
            self.read_ahead(page)
        self.paid(start)

    def read_ahead(self, page: Page) -> None:
        """Begin to read the saved tensors that backward uses after this one, as far as there is room."""
        room = self.limit - used() - 2 * self.slack
        for number in range(page.number - 1, max(page.number - AHEAD, -1), -1):
            reference = self.saved.get(number)
            other = reference() if reference is not None else None
            if other is None or other.array is not None:
                continue
            room -= other.nbytes
            if room < 0 or not other.piece.prefetch():
                return

    def write_behind(self) -> None:
        """Begin to write the saved tensors that will have to go first, so that dropping them takes no time."""
        spill = self.spill
        while self.behind < self.count:
            reference = self.saved.get(self.behind)
            page = reference() if reference is not None else None
            if page is not None and page.array is not None and page.piece is None:
                if spill.queued + page.nbytes > spill.limit:
                    return
                page.piece = spill.put(page.array)
            self.behind += 1

    def send(self, page: Page) -> int:
        """Write a page, unless that was done, and drop its array; the bytes that frees, once it is written."""
        if page.piece is None:
            page.piece = self.spill.put(page.array)
        self.roots.pop(id(page.array), None)
        page.array = None
        self.away += page.nbytes
        self.moved_out[page.kind] += page.nbytes
        return int(page.nbytes)

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

    def make_room(self, over: int) -> None:
        """Send pages away until `over` bytes are free, and some more, or nothing else can be sent."""
        if threading.current_thread().name == "rushlight.stores":
            return  # a thread that reads ahead is refused: it cannot wait for what it is to do itself
        self.lock.acquire()
        start = self.clock()
        try:
            self.asked += 1
            self.demand = max(self.demand, self.limit + over + self.away)
            goal = used() - over
            if self.asked == 1:
                self.scan()
            if not self.reach(goal):
                self.scan()
                if not self.reach(goal):
                    self.least = max(self.least, self.limit + used() - goal)
        except BaseException as error:  # nothing may leave the allocator: the refusal is explained later
            self.error = error
        finally:
            self.paid(start)
            self.lock.release()

    def reach(self, goal: int) -> bool:
        """Send idle pages away until no more than `goal` bytes are in use, and some less; whether that came about.

        First those that are on disk already, and those on their way there.
        """
        least = goal - self.slack
        self.free(least, True)
        if used() > goal and self.spill.queued:
            self.spill.flush()
            self.free(least, True)
        if used() > goal:
            self.free(least, False)
            self.spill.flush()
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
                if page is not None and (page.piece is not None or not written) and page.idle:
                    left -= self.send(page)

    def newest_first(self, kind: str) -> bool:
        """Whether, of a kind, what was used last is used again the latest."""
        return kind == STATE or (kind == PARAMETER and modes.run is not None)

    # What is to be paged ---------------------------------------------------------------------------

    def adopt(self, tensor: Any, kind: str) -> None:
        """Let a tensor's array be sent away."""
        if type(tensor) in PAGED and adopt(tensor, kind, self) is not None:
            self.tensors.append(weakref.ref(tensor))

    def scan(self) -> None:
        """Adopt all parameters, gradients and state of optimizers that there are."""
        for x in gc.get_objects():
            kind = type(x)  # asking foreign objects with isinstance may run their code
            if issubclass(kind, Optimizer):
                self.adopt_state(x)
            elif issubclass(kind, Tensor) and (kind is Parameter or x._edge is LEAF):
                self.adopt(x, PARAMETER)
                if x._grad is not None:
                    self.adopt(x._grad, GRADIENT)

    def adopt_state(self, optimizer: Any) -> None:
        """Adopt what an optimizer keeps, if there is more of it than when last looked at."""
        if self.known.get(id(optimizer)) == len(optimizer.state):
            return
        self.known[id(optimizer)] = len(optimizer.state)
        for state in list(optimizer.state.values()):
            for value in list(state.values()) if isinstance(state, dict) else ():
                self.adopt(value, STATE)

    def adopt_gradient(self, leaf: Any) -> None:
        """Adopt the gradient of a leaf."""
        if leaf._grad is not None:
            self.adopt(leaf._grad, GRADIENT)

    def release(self) -> None:
        """Make tensors ordinary again: what is in memory now, the rest when it is asked for, so that no memory is taken."""
        self.closed = True
        for reference in self.tensors:
            tensor = reference()
            if tensor is not None and type(tensor) not in PAGED and in_memory(tensor):
                release(tensor)
        self.tensors = []

    # Saved tensors: a pair of hooks --------------------------------------------------------------------

    def pack(self, tensor: Any) -> Any:
        """A saved tensor as a page; itself where it is small, a parameter, or memory of another's."""
        if type(tensor) not in PAGED or isinstance(tensor, Parameter) or tensor._edge is LEAF:
            return tensor
        array = tensor._array
        root = root_of(array)
        if root.nbytes < 1 << 16 or not whole(root):
            return tensor
        reference = self.roots.get(id(root))
        page = reference() if reference is not None else None
        if page is None or page.array is not root:
            page = Page(root, SAVED, False, self)
            self.roots[id(root)] = weakref.ref(page)
            if self.asked:
                self.write_behind()
        return Kept(tensor, page, None if array is root else View(array, root))

    def unpack(self, packed: Any) -> Any:
        """The tensor again."""
        return wrap(packed.array()) if packed.__class__ is Kept else packed


def used() -> int:
    """Bytes in use."""
    return allocator.totals().bytes
