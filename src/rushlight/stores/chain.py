"""Stores that are active together: one pair of hooks, which packs with the innermost first."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.keeping import gates
from rushlight.engine.saved import Anything, Packed, Sparing
from rushlight.signs import turned
from rushlight.storage import Storage, storage_of
from rushlight.stores.layout import Layout, layout_of, stretch
from rushlight.stores.region import Coded, Exposed, Handle, Passed, Region, Watch, encoded
from rushlight.tensor import LEAF, Tensor, wrap


class Table:
    """Which regions stand for the memory of which storages, as it is now: so that none is stored twice."""

    def __init__(self) -> None:
        self.of: weakref.WeakKeyDictionary[Any, tuple[int, dict[Any, Any]]] = weakref.WeakKeyDictionary()

    def regions(self, storage: Storage, version: int) -> dict[Any, Any]:
        """Weak references to the regions of a storage at a version, by what they are."""
        found = self.of.get(storage)
        if found is None or found[0] != version:
            found = self.of[storage] = (version, {})
        return found[1]

    def find(self, storage: Storage, version: int, layout: Layout, kind: tuple[int, ...]) -> Region | None:
        """A region that holds what `layout` does, kept in the way of `kind`."""
        regions = self.regions(storage, version)
        for key in ((layout, kind), (layout.start, layout.stop, layout.dtype, kind), (layout.dtype, kind)):
            reference = regions.get(key)
            region = None if reference is None else reference()
            if region is not None and (
                key[0] is layout or (region.start <= layout.start and layout.stop <= region.stop and not layout.compact)
            ):
                return region  # type: ignore[no-any-return]
        return None

    def add(self, storage: Storage, version: int, layout: Layout, kind: tuple[int, ...], region: Region) -> None:
        """Remember a region."""
        regions, reference = self.regions(storage, version), weakref.ref(region)
        if layout.compact:
            regions[layout, kind] = reference
            return
        regions[layout.start, layout.stop, layout.dtype, kind] = reference
        largest = regions.get((layout.dtype, kind))
        largest = None if largest is None else largest()
        if largest is None or largest.stop - largest.start < layout.stop - layout.start:
            regions[layout.dtype, kind] = reference


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is a leaf that requires grad or a module's parameter, or a view of one: others keep it anyway."""
    base = tensor if tensor._view is None else tensor._view.base
    if base._edge is LEAF:
        return True
    loaded = sys.modules.get("rushlight.nn.parameter")  # where it is not, there are no modules
    return loaded is not None and isinstance(base, loaded.Parameter)


class Chain(Sparing):
    """The pair of hooks of several stores, innermost first, which are active together."""

    stores: tuple[Any, ...]

    @classmethod
    def of(cls, stores: tuple[Any, ...], around: tuple[Any, ...]) -> Chain:
        """The chain of `stores`; around: the pairs of hooks around it, innermost last."""
        made = cls((Packer(stores, bool(around) and around[-1].__class__ is not Anything).pack, unpack))
        made.stores = stores
        return made


class Packer:
    """The pack hook of a chain.

    exposes: whether hooks around it, which are no stores, are shown the tensors that stores make.
    """

    def __init__(self, stores: tuple[Any, ...], exposes: bool):
        self.stores, self.exposes = stores, exposes

    def pack(self, tensor: Tensor) -> Any:
        """What the stores keep of a tensor."""
        if tensor._bits:  # what it shows: its memory is another's, who may be kept too
            tensor = wrap(turned(tensor._held, tensor._bits))
        array, where = tensor._array, modes.saving
        if array.__class__ is not np.ndarray or tensor._inference:
            return tensor
        storage = storage_of(tensor)
        version, layout = storage.version, layout_of(array)
        parameter = is_parameter(tensor)
        watch = Watch(tensor, storage, version, where) if modes.mutation is None else None
        saved = Saved(tensor, storage, version, layout, watch)
        stages = [s for s in self.stores if s.accepts(layout.nbytes, where, parameter)]
        dropping = [s for s in stages if s.recomputes]  # first, wherever they stand: what they drop nobody need keep
        stages = [s for s in stages if not s.recomputes]
        for store in dropping:
            region = store.recomputed(saved)
            if region is not None:
                return self.handle(region, saved, stages)
        if not stages:
            return self.passed(saved, parameter)
        return self.exposed(tuple(stages), saved) if self.exposes else self.kept(tuple(stages), saved)

    def handle(self, region: Region, saved: Saved, stages: list[Any] | tuple[Any, ...]) -> Handle:
        """A handle of the tensor in a region, which stores on disk are told of."""
        layout = saved.layout
        handle = Handle(region, layout if layout.compact else layout.within(region.start), saved.watch)
        for stage in stages:
            if stage.on_disk:
                stage.order.add(handle)
        return handle

    def passed(self, saved: Saved, parameter: bool) -> Any:
        """A tensor that no store takes, its version watched."""
        if saved.watch is None:
            return saved.tensor
        for store in self.stores:
            if store.recomputes and not parameter and not self.exposes:
                return store.source(saved)
        return saved.tensor, Passed(saved.watch)

    def exposed(self, stages: tuple[Any, ...], saved: Saved) -> Any:
        """The tensors that stores make of one, to be packed by the hooks around them."""
        coded = encoded(stages, saved.flat(), saved.guard)
        for stage in stages:
            stage.note_kept(saved.layout.nbytes)
        if len(stages) > 1 or not coded.parts:
            return Handle(Region(coded, saved.layout, 0, saved.watch, saved.array), saved.layout, saved.watch)
        tensors, coded.parts = [wrap(part) for part in coded.parts], []
        return Exposed(coded, saved.layout, saved.watch, saved.array), *tensors

    def kept(self, stages: tuple[Any, ...], saved: Saved) -> Handle:
        """A handle of the region in which stores keep a tensor: one that there is, or a new one."""
        kind, table, layout = tuple(map(id, stages)), stages[0].table, saved.layout
        region = table.find(saved.storage, saved.version, layout, kind) if saved.watch is not None else None
        if region is None:
            region = Region(encoded(stages, saved.flat(), saved.guard), layout, 0, saved.watch, saved.array)
            table.add(saved.storage, saved.version, layout, kind, region)
            for stage in stages:
                stage.note_kept(layout.nbytes)
        else:
            for stage in stages:
                stage.note_shared(layout.nbytes)
        for store in self.stores:
            if store.recomputes:
                store.learn(saved, region)
        return self.handle(region, saved, stages)


class Saved:
    """A tensor that is being packed."""

    __slots__ = ("layout", "storage", "tensor", "version", "watch")

    def __init__(self, tensor: Tensor, storage: Storage, version: int, layout: Layout, watch: Any):
        self.tensor, self.storage, self.version, self.layout, self.watch = tensor, storage, version, layout, watch

    def flat(self) -> Any:
        """Its stretch of memory: a copy where changes in place are allowed to follow."""
        flat = stretch(self.tensor._array, self.layout)
        return flat if self.watch is not None else flat.copy()

    @property
    def array(self) -> Any:
        """Its array; None where what is packed stays as it is, whatever happens to the tensor."""
        return None if self.watch is None else self.tensor._array

    @property
    def guard(self) -> Callable[..., Any] | None:
        """Tells whether the memory is still as it was."""
        storage, version = self.storage, self.version
        return (lambda: storage.version == version) if self.watch is not None else None


def unpack(packed: Any) -> Any:
    """The tensor from what a chain made of it."""
    if packed.__class__ is Handle:
        return packed.tensor()
    if isinstance(packed, Tensor):
        return packed
    first, *rest = packed
    if first.__class__ is Exposed:
        return first.tensor(rest)
    rest[0].watch.check(first._array.shape)
    return first


def _example(tensor: Tensor, copied: bool) -> Packed:
    """What a node keeps of a result in a store: copied, or as it is."""
    layout, watch = layout_of(tensor._array), Watch(tensor, storage_of(tensor), 0, ())
    flat = stretch(tensor._array, layout)
    region = Region(Coded(None, [], None, flat) if copied else flat, layout, 0, watch, tensor._array)
    made = [Handle(region, layout, watch)]
    return Packed(tensor, ((lambda _: made.pop(), None),), None, True)


gates.ALONE |= gates.alone(lambda tensor: _example(tensor, True)) | gates.alone(lambda tensor: _example(tensor, False))
