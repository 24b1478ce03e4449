"""Until when the program itself holds what is saved for backward: in variables, lists, the arguments of modules under way.

A budget can send away only what nobody holds but the graph.  Here a rehearsal keeps saved tensors in pages, as a budget does,
so that reference counts tell.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import Setting, modes
from rushlight.engine.saved import Sparing
from rushlight.memory.budgets.pages import SMALL, Kept, SavedPage, View, gapless
from rushlight.memory.counting.holders import ACTIVATION
from rushlight.memory.estimates.standins import owns
from rushlight.storage import root_of, storage_of
from rushlight.tensor import LEAF, Tensor

if TYPE_CHECKING:
    from rushlight.memory.estimates.rehearsal import Rehearsal
    from rushlight.memory.estimates.standins import Tally


class Holding:
    """In place of a pager, in a rehearsal: it sends nothing away, and tells the tally when the program lets go of a page."""

    def __init__(self, tally: Tally):
        self.tally = tally
        self.pages: dict[int, Any] = {}  # by id of the root: weak references
        self.watched: dict[int, Any] = {}  # the same of the pages that the program still holds

    # As pages ask of a pager -------------------------------------------------------------------------

    def add(self, page: SavedPage) -> None:
        """A page begins to live."""

    def drop(self, page: SavedPage) -> None:
        """A page ceases to live."""

    def not_ready(self, page: SavedPage) -> None:
        """What was written is void."""

    def use(self, page: SavedPage) -> Any:
        """The array of a page."""
        return page.data

    # Saved tensors: a pair of hooks --------------------------------------------------------------------

    def pack(self, tensor: Tensor) -> Any:
        """A saved tensor as a page; itself where a budget leaves it as it is."""
        array: Any = tensor._held
        root = root_of(array)
        if (
            type(tensor) is not Tensor
            or tensor._edge is LEAF
            or root.nbytes < SMALL
            or not owns(root)
            or not gapless(root)
        ):
            return tensor
        return Kept(self.page_of(root, tensor), None if array is root else View(array, root), tensor._bits, tensor)

    def page_of(self, root: Any, tensor: Tensor) -> SavedPage:
        """The page of a memory at its version."""
        storage, known = storage_of(tensor), self.pages.get(id(root), _nobody)()
        if known is not None and known.data is root and known.version == storage.version:
            return known  # type: ignore[no-any-return]
        self.tally.add(root)
        self.tally.categorize(root, ACTIVATION)
        self.tally.hold(root)
        page = SavedPage(root, "activation", self, storage)
        self.pages[id(root)] = self.watched[id(root)] = weakref.ref(page)
        return page

    def unpack(self, kept: Any) -> Tensor:
        """The tensor again."""
        found: Tensor = kept.tensor() if kept.__class__ is Kept else kept
        return found

    def look(self) -> None:
        """See what the program has let go of."""
        for key, reference in list(self.watched.items()):
            page = reference()
            if page is None or page.idle:
                del self.watched[key]
            if page is not None and page.idle:
                self.tally.hold(page.data, len(self.tally.events))


def _nobody() -> None:
    """In place of a weak reference."""


@contextmanager
def watched(rehearsal: Rehearsal) -> Iterator[None]:
    """Saved tensors are kept as a budget keeps them, and the tally knows until when the program held them."""
    holding, tally = Holding(rehearsal.tally), rehearsal.tally
    tally.looking = holding.look
    try:
        with Setting("saved_hooks", (*modes.saved_hooks, Sparing((holding.pack, holding.unpack)))):
            yield
    finally:
        tally.looking = None
