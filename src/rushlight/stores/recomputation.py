"""Saved tensors that are computed again instead of kept."""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any

import numpy as np

from rushlight.events import INPLACE, OPERATOR
from rushlight.state import modes, set_mode
from rushlight.storage import storage_of
from rushlight.stores.layout import layout_of, stretch
from rushlight.stores.recipes import Recipe, Source, is_cheap, recipe_of
from rushlight.stores.region import Handle, Region
from rushlight.stores.store import Store
from rushlight.tensor import Tensor


class Calls(threading.local):
    """The operator calls under way in this thread: (operator, sources, statics), or None for those that are not cheap."""

    def __init__(self) -> None:
        self.open: list[Any] = []


class RecomputeStore(Store):
    """Drops saved tensors that a few cheap operators compute again, in backward, from others that are kept.

    Cheap are elementwise operators, activations, normalisations, softmax, dropout (its draws are not repeated) and copies:
    so of a convolution, a batch norm and a relu, the input of the norm is kept, and the relu's result, which the next
    convolution saves, is not. Gradients are bit for bit the same. It stores nothing itself: other stores, inside or
    around it, get what it does not drop, and what it needs is taken from them.

    As a wrapper of a module it is a checkpoint instead (`torch.utils.checkpoint`, `use_reentrant=False`): the module's inputs
    alone are kept, and its forward runs again in backward.

    Args:
        limit: how many operators may have to run again for one tensor.
        Further: the filters of every store, for what is dropped.

    >>> import rushlight as torch
    >>> from rushlight import stores
    >>> x = torch.randn(64, 64, requires_grad=True)
    >>> w = torch.randn(64, 64, requires_grad=True)
    >>> with stores.recompute() as store:
    ...     y = ((x @ w).tanh().sigmoid() @ w).sum()
    >>> y.backward()
    >>> store.stats()["dropped_bytes"]
    16384
    """

    kind = "recompute"
    recomputes = True

    def __init__(self, *, limit: int = 4, **filters: Any):
        super().__init__(**filters)
        if limit < 1:
            raise ValueError(f"stores.recompute: limit= must be at least 1 operator, got {limit}")
        self.limit = limit
        self.calls_open = Calls()
        self.recipes: weakref.WeakKeyDictionary[Any, tuple[int, Recipe]] = weakref.WeakKeyDictionary()
        self.regions: weakref.WeakKeyDictionary[Any, tuple[int, Any]] = weakref.WeakKeyDictionary()

    # Contexts ----------------------------------------------------------------------------------------

    def __enter__(self) -> Any:
        super().__enter__()
        self.entered.former.append(modes.observers)
        if self not in modes.observers:
            set_mode("observers", (*modes.observers, self))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("observers", self.entered.former.pop())
        super().__exit__(kind, error, tb)

    def run(self, forward: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """The forward of a wrapped module: checkpointed."""
        from rushlight.checkpoint import checkpoint

        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    # Observing operators -----------------------------------------------------------------------------

    passive = False

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> Any:
        """An operator is called: note where its inputs can be had."""
        if kind in (OPERATOR, INPLACE):
            call = None
            if is_cheap(what) and modes.grad:
                sources = recipe_of(what, inputs, statics, self)
                call = None if sources is None else (what, sources, statics)
            self.calls_open.open.append(call)

    def end(self, kind: int, what: Any, inputs: Any, statics: Any, token: Any, result: Any) -> None:
        """It returned: note how its result was made."""
        if kind in (OPERATOR, INPLACE):
            call = self.calls_open.open.pop()
            first = result[0] if isinstance(result, tuple) and result else result
            if call is not None and isinstance(first, Tensor) and first._array.__class__ is np.ndarray:
                self.made(call, first._array, storage_of(first))

    def made(self, call: Any, array: Any, storage: Any) -> None:
        """Remember the recipe of a result that has its memory for itself."""
        op, sources, statics = call
        for source in sources:
            if source.__class__ is Source:
                source.look(self)
        layout = layout_of(array)
        root = storage.root
        if layout.compact or layout.start or layout.stop != root.nbytes or not layout.nbytes:
            return
        recipe = Recipe(op, statics, sources, layout)
        if recipe.cost <= self.limit:
            self.recipes[storage] = (storage.version, recipe)
        else:
            self.recipes.pop(storage, None)

    def recipe(self, storage: Any, version: int) -> Any:
        """The recipe of a storage at a version."""
        found = self.recipes.get(storage)
        return found[1] if found is not None and found[0] == version else None

    def region(self, storage: Any, version: int) -> Any:
        """A weak reference to the region that keeps a storage at a version."""
        found = self.regions.get(storage)
        return found[1] if found is not None and found[0] == version else None

    # Packing -----------------------------------------------------------------------------------------

    def learn(self, saved: Any, region: Any) -> None:
        """A region was made of a saved tensor: what is computed from it can be computed again."""
        known = self.region(saved.storage, saved.version)
        known = None if known is None else known()
        if not saved.layout.compact and (known is None or known.stop - known.start < region.stop - region.start):
            self.regions[saved.storage] = (saved.version, weakref.ref(region))

    def source(self, saved: Any) -> Any:
        """Keep a tensor that no store takes as it is."""
        known = self.region(saved.storage, saved.version)
        region = None if known is None else known()
        layout = saved.layout
        if region is None or not (region.start <= layout.start and layout.stop <= region.stop) or layout.compact:
            region = Region(stretch(saved.tensor._array, layout), layout, 0, saved.watch)
            self.learn(saved, region)
        return Handle(region, layout if layout.compact else layout.within(region.start), saved.watch)

    def recomputed(self, saved: Any) -> Any:
        """The region of a tensor that can be computed again, None if it cannot."""
        if saved.layout.compact or saved.watch is None:
            return None
        storage, version = saved.storage, saved.version
        known = self.region(storage, version)
        region = None if known is None else known()
        if region is not None:
            return region if region.start <= saved.layout.start and saved.layout.stop <= region.stop else None
        found = self.recipe(storage, version) or self.under_way(saved)
        again = None if found is None else found.resolved(self)
        if again is None:
            return None
        region = Region(again, found.layout, again.cost)
        self.regions[storage] = (version, weakref.ref(region))
        self.note_kept(saved.layout.nbytes)
        return region

    def under_way(self, saved: Any) -> Any:
        """The recipe of a result that its own operator saves."""
        calls, where = self.calls_open.open, modes.saving
        call = calls[-1] if calls else None
        if call is None or where is None or where[0] != call[0].name or where[1] != call[0].out_names[0]:
            return None
        if self not in getattr(modes.saved_hooks[-1], "stores", ()):
            return None  # hooks within made something else of the result
        self.made(call, saved.tensor._array, saved.storage)
        return self.recipe(saved.storage, saved.version)

    def stats(self) -> dict[str, Any]:
        """As of every store; `dropped_bytes` are those of the tensors that are computed again."""
        return {**super().stats(), "dropped_bytes": self.counts["bytes"]}

    def arguments(self) -> list[str]:
        return [f"limit={self.limit}", *super().arguments()]
