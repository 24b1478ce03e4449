"""Which operator calls made which tensors, learnt by observing the operators of a thread."""

from __future__ import annotations

import threading
import weakref
from time import perf_counter
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.events import INPLACE, OPERATOR
from rushlight.basics.state import modes
from rushlight.dispatch.declare import Op
from rushlight.dispatch.keeping.unmade import place_of
from rushlight.storage import Storage, storage_of
from rushlight.stores.layout import layout_of
from rushlight.stores.recipes import Again, Recipe, Source, is_cheap, recipe_of
from rushlight.tensor import Tensor


class Calls(threading.local):
    """The operator calls under way in this thread: (operator, sources, statics, start), or None if they are not cheap."""

    def __init__(self) -> None:
        self.open: list[Any] = []


class Recipes:
    """An observer that remembers how results of cheap operators can be computed again, and what is kept of their inputs.

    limit: how many operators may have to run again for one tensor.  Regions are what keeps memory: they say from where
    to where (`start`, `stop`, in bytes), how many operators and seconds it takes to have them (`cost`, `seconds`), and
    give the `array()`.
    """

    passive = looks = False

    def __init__(self, limit: int):
        self.limit = limit
        self.calls = Calls()
        self.recipes: weakref.WeakKeyDictionary[Any, tuple[int, Recipe]] = weakref.WeakKeyDictionary()
        self.regions: weakref.WeakKeyDictionary[Any, tuple[int, Any]] = weakref.WeakKeyDictionary()

    # Observing operators -----------------------------------------------------------------------------

    def begin(self, kind: int, what: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """An operator is called: note where its inputs can be had."""
        if kind in (OPERATOR, INPLACE):
            if kind == INPLACE and isinstance(inputs[0], Tensor) and not inputs[0]._inference:
                self.changes(storage_of(inputs[0]))
            call = None
            if is_cheap(what) and modes.grad and all(place_of(x) is None for x in inputs):
                sources = recipe_of(what, inputs, statics, self)
                call = None if sources is None else (what, sources, statics, perf_counter())
            self.calls.open.append(call)

    def changes(self, storage: Storage) -> None:
        """A storage is about to be changed in place: whoever computes from it has to do so now."""
        reference = self.region(storage, storage.version)
        region = None if reference is None else reference()
        if region is not None and hasattr(region, "before_change"):
            region.before_change()

    def end(
        self,
        kind: int,
        what: Op | type[Any],
        inputs: tuple[Any, ...],
        statics: tuple[Any, ...],
        token: Any,
        result: Any,
    ) -> None:
        """It returned: note how its result was made."""
        if kind in (OPERATOR, INPLACE):
            call = self.calls.open.pop()
            first = result[0] if isinstance(result, tuple) and result else result
            if call is None or not isinstance(first, Tensor) or first._bits or place_of(first) is not None:
                return
            if first._array.__class__ is np.ndarray:
                self.made(call, first._array, storage_of(first))

    def made(self, call: tuple[Any, ...], array: Array, storage: Storage) -> None:
        """Remember the recipe of a result that has its memory for itself, and all of it."""
        op, sources, statics, start = call
        for source in sources:
            if source.__class__ is Source:
                source.look(self)
        layout = layout_of(array)
        root = storage.root
        if (
            layout.compact
            or layout.start
            or layout.stop != root.nbytes
            or not layout.nbytes
            or array.nbytes < root.nbytes
        ):
            return  # an operator that changed every other column in place did not make what lies between
        recipe = Recipe(op, statics, sources, layout, perf_counter() - start)
        if recipe.cost <= self.limit:
            self.recipes[storage] = (storage.version, recipe.of(array))
        else:
            self.recipes.pop(storage, None)

    # What is known -----------------------------------------------------------------------------------

    def recipe(self, storage: Storage, version: int) -> Recipe | None:
        """The recipe of a storage at a version."""
        found = self.recipes.get(storage)
        return found[1] if found is not None and found[0] == version and not found[1].void else None

    def region(self, storage: Storage, version: int) -> Any:
        """A weak reference to the region that keeps a storage at a version."""
        found = self.regions.get(storage)
        return found[1] if found is not None and found[0] == version else None

    def learn(self, storage: Storage, version: int, region: object) -> None:
        """A region keeps a storage: what is computed from that can be computed again."""
        self.regions[storage] = (version, weakref.ref(region))

    def again(self, storage: Storage, version: int, array: Array | None) -> Again | None:
        """What computes the memory of a tensor that is being saved again, None if nothing can.

        array: the tensor's, if it may be the result of the operator that is under way, and saves it itself.
        """
        found = self.recipe(storage, version)
        if found is None and array is not None:
            found = self.under_way(storage, version, array)
        return None if found is None else found.resolved(self)

    def under_way(self, storage: Storage, version: int, array: Array) -> Recipe | None:
        """The recipe of a result that its own operator saves."""
        calls, where = self.calls.open, modes.saving
        call = calls[-1] if calls else None
        if call is None or where is None or where[0] != call[0].name or where[1] != call[0].out_names[0]:
            return None
        self.made(call, array, storage)
        return self.recipe(storage, version)
