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
from rushlight.memory.pages import PAGED, Kept, Page, View, adopt, release, whole
from rushlight.nn.parameter import Parameter
from rushlight.optim.optimizer import Optimizer
from rushlight.state import modes
from rushlight.storage import root_of
from rushlight.stores.files import Spill
from rushlight.tensor import LEAF, Tensor, wrap

STATE, SAVED, GRADIENT, PARAMETER = "optimizer_state", "activation", "gradient", "parameter"
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
        self.known: dict[int, int] = {}  # of optimizers by id: how many parameters had state when last looked at

    # Pages -----------------------------------------------------------------------------------------

    def add(self, page: Page) -> None:
        """A page begins to live."""
        self.pages[page.kind][id(page)] = weakref.ref(page)

    def drop(self, page: Page) -> None:
        """A page ceases to live."""
        self.pages[page.kind].pop(id(page), None)
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
        plain = piece.axes is None
        data = np.empty(piece.shape, piece.dtype) if plain else np.empty(page.nbytes, np.uint8)
        array = piece.get(out=data) if plain else piece.laid_out(piece.get(out=data))
        del data
        with self.lock:
            if page.array is None:
                page.array = array
                self.away -= page.nbytes
                self.moved_in[page.kind] += page.nbytes
            if page.mutable:
                page.piece = None
        if page.mutable:
            piece.free()
        self.paid(start)

    def send(self, page: Page) -> int:
        """Write a page and drop its array; the bytes that frees."""
        start = self.clock()
        if page.piece is None:
            page.piece = self.spill.put(page.array)
        self.roots.pop(id(page.array), None)
        page.array = None
        self.away += page.nbytes
        self.moved_out[page.kind] += page.nbytes
        self.paid(start)
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
        with self.lock:
            self.asked += 1
            self.demand = max(self.demand, self.limit + over + self.away)
            try:
                if self.asked == 1:
                    self.scan()
                freed = self.free(over + self.slack)
                if freed < over:
                    self.scan()
                    freed += self.free(over - freed)
                if freed < over:
                    self.least = max(self.least, self.limit + over - freed)
            except BaseException as error:  # nothing may leave the allocator: the refusal is explained later
                self.error = error

    def free(self, goal: int) -> int:
        """Send idle pages away, those used latest in the future first, until `goal` bytes are free; how many are."""
        freed = 0
        for kind in KINDS:
            references = list(self.pages[kind].values())
            if self.newest_first(kind):
                references.reverse()
            for reference in references:
                if freed >= goal:
                    return freed
                page = reference()
                if page is not None and page.idle:
                    freed += self.send(page)
        return freed

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
            if isinstance(x, Optimizer):
                self.adopt_state(x)
            elif isinstance(x, Tensor) and (type(x) is Parameter or x._edge is LEAF):
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
        """Make all tensors ordinary again."""
        for reference in self.tensors:
            tensor = reference()
            if tensor is not None and type(tensor) not in PAGED:
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
        return Kept(tensor, page, None if array is root else View(array, root))

    def unpack(self, packed: Any) -> Any:
        """The tensor again."""
        return wrap(packed.array()) if packed.__class__ is Kept else packed


def used() -> int:
    """Bytes in use."""
    return allocator.totals().bytes
