"""How a tensor can be computed again: the operator that made it, and where its inputs can be had."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.compute import compute
from rushlight.storage import bytes_before, depend, independent, is_shown, memory_of, storage_of
from rushlight.stores.chain import is_parameter
from rushlight.stores.layout import Layout, extremes, layout_of, stretch, viewed
from rushlight.stores.region import Region, Watch
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op
    from rushlight.stores.calls import Recipes

SMALL = 16  # an input of at most this part of the result's bytes is copied


def is_cheap(op: Op) -> bool:
    """Whether an operator may run again."""
    return op.repeatable and op.sequence is None and not op.view


def rehearsed() -> Any:
    """The level under which nothing is computed, None in a run; nobody changes the memory of its arrays."""
    return next((level for level in modes.levels if level.dry), None) if modes.levels else None


class Source:
    """An input of an operator, without the memory: where to look for it when its result is saved."""

    __slots__ = (
        "__weakref__",
        "dtype",
        "itemsize",
        "keys",
        "lost",
        "nbytes",
        "offset",
        "parameter",
        "recipe",
        "region",
        "shape",
        "shown",
        "storage",
        "strides",
        "version",
    )

    def __init__(self, tensor: Tensor, recipes: Recipes):
        array, storage = tensor._array, storage_of(tensor)
        self.offset = bytes_before(array)
        self.shape, self.strides, self.dtype, self.nbytes = array.shape, array.strides, array.dtype, array.nbytes
        self.itemsize = array.itemsize
        self.storage, self.version = weakref.ref(storage), storage.version
        self.parameter = tensor if is_parameter(tensor) else None
        self.region = recipes.region(storage, self.version)
        self.recipe = None if self.kept() is not None else recipes.recipe(storage, self.version)
        self.shown, self.lost = is_shown(array) and rehearsed() is None, False
        self.keys = [depend(array, self)]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """The memory is about to change: what it holds then is no longer this input."""
        self.lost = True

    def kept(self) -> Any:
        """The region that has it, if that lives."""
        return None if self.region is None else self.region()

    def look(self, recipes: Recipes) -> None:
        """Look for its region while its storage lives: the operator itself may have had it saved."""
        storage = self.storage()
        if storage is not None and self.kept() is None:
            self.region = recipes.region(storage, self.version)

    @property
    def cost(self) -> int:
        """How many operators run to have it."""
        kept = self.kept()
        return kept.cost if kept is not None else 0 if self.recipe is None else self.recipe.cost

    def resolved(self, recipes: Recipes, small: int) -> Copied | FromRegion | FromTensor | None:
        """Something to take it from when the time comes, None if there is nothing.  small: bytes that may be copied."""
        storage = self.storage()
        self.look(recipes)
        region = self.kept()
        if self.lost or (storage is not None and storage.version != self.version):
            storage = region = None  # it has other values now
        if self.shown:  # it may have any later: what is small is copied
            region = None
        if self.parameter is None and region is not None and self.within(region):
            return FromRegion(self, region)
        if storage is not None and self.nbytes <= small:
            return Copied(self.view_of(storage.root).copy(order="K"))
        if storage is not None and self.parameter is not None and not self.shown:
            return FromTensor(
                self.parameter, Watch(self.parameter, storage, self.version, ("stores.recompute", "an input"))
            )
        if self.recipe is not None:
            found = self.recipe.resolved(recipes)
            return None if found is None else FromRegion(self, Region(found, self.recipe.layout, found.cost))
        return None

    def within(self, region: Region) -> bool:
        """Whether all of it lies in a region."""
        low, high = extremes(self)
        return bool(region.start <= self.offset + low and self.offset + high <= region.stop)

    def view_of(self, root: Array, start: int = 0) -> Array:
        """The input, given the memory from byte `start` on."""
        return np.ndarray(self.shape, self.dtype, memory_of(root), self.offset - start, self.strides)


class FromRegion:
    """An input that stores keep, or that is computed again itself."""

    __slots__ = ("region", "source")

    def __init__(self, source: Source, region: Region):
        self.source, self.region = source, region

    @property
    def cost(self) -> int:
        """How many operators run to have it."""
        return self.region.cost

    @property
    def seconds(self) -> float:
        """How long they take."""
        return self.region.seconds

    def array(self) -> Array:
        """The input; raises RuntimeError if it was changed since, which the region may not have noticed."""
        if self.region.watch is not None:
            self.region.watch.check(self.source.shape)
        return self.source.view_of(self.region.array(), self.region.start)

    def walk(self) -> Any:
        """What is encoded of it."""
        return self.region.walk()

    def sources(self) -> list[Array] | tuple[Array, ...]:
        """The memory in use by others that it is taken from."""
        found = self.region.alive()
        return self.region.sources() if found is None else (found,)


class FromTensor:
    """An input that somebody else keeps."""

    __slots__ = ("tensor", "watch")
    cost, seconds = 0, 0.0

    def __init__(self, tensor: Tensor, watch: Watch):
        self.tensor, self.watch = tensor, watch

    def array(self) -> Any:
        """The input; raises RuntimeError if it was changed since."""
        self.watch.check(self.tensor._array.shape)
        return self.tensor._array

    def walk(self) -> tuple[Any, ...]:
        """Nothing is encoded."""
        return ()

    def sources(self) -> tuple[Array, ...]:
        """The memory in use by others that it is taken from."""
        return (self.tensor._array,)


class Copied(FromTensor):
    """A small input, or a number."""

    __slots__ = ("value",)

    def __init__(self, value: Array | float):
        self.value = value

    def array(self) -> Any:
        return self.value

    def sources(self) -> tuple[Any, ...]:
        return ()


class Recipe:
    """The operator call that made a tensor, and the seconds that it took.  void: whether the tensor has other values now."""

    __slots__ = ("__weakref__", "cost", "inputs", "keys", "layout", "op", "seconds", "statics", "void")

    def __init__(self, op: Op, statics: tuple[Any, ...], inputs: list[Any], layout: Layout, seconds: float):
        self.op, self.statics, self.inputs, self.layout, self.seconds = op, statics, inputs, layout, seconds
        self.cost = 1 + sum(x.cost for x in inputs if x.__class__ is Source)
        self.void, self.keys = False, list[int]()

    def of(self, array: Array) -> Recipe:
        """This recipe, void when the memory of the tensor changes."""
        self.keys = [depend(array, self)]
        return self

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """The memory of the tensor is about to change."""
        self.void = True

    def resolved(self, recipes: Recipes) -> Again | None:
        """What computes it again, None if an input cannot be had."""
        found = []
        for x in self.inputs:
            source = x.resolved(recipes, self.layout.nbytes // SMALL) if x.__class__ is Source else Copied(x)
            if source is None:
                return None
            found.append(source)
        again = Again(self, found)
        return again if again.cost <= recipes.limit else None


class Again:
    """Computes a tensor again: what a region keeps instead of it.  cost, seconds: operators that run, and their time."""

    __slots__ = ("cost", "dtype", "inputs", "layout", "op", "seconds", "size", "statics")

    def __init__(self, recipe: Recipe, inputs: list[Any]):
        self.op, self.statics, self.inputs, self.layout = recipe.op, recipe.statics, inputs, recipe.layout
        self.cost = 1 + sum(x.cost for x in inputs)
        self.seconds: float = recipe.seconds + sum(x.seconds for x in inputs)
        self.dtype, self.size = self.layout.dtype, self.layout.nbytes // self.layout.dtype.itemsize

    def result(self) -> Any:
        """The tensor's array, which has its memory for itself."""
        level, arrays = rehearsed(), [x.array() for x in self.inputs]
        outs, _ = (
            compute(self.op, arrays, self.statics) if level is None else level.again(self.op, arrays, self.statics)
        )
        out, layout = outs[0], self.layout
        if out.dtype != layout.dtype or out.strides != layout.strides or layout_of(out) != layout:
            made = viewed(np.empty(self.size, layout.dtype), layout)
            made[...] = out
            return made
        return out

    def decoded(self) -> Any:
        """The tensor's memory, flat."""
        return stretch(self.result(), self.layout)

    def sources(self) -> list[Any]:
        """The memory in use by others that it is computed from."""
        return [array for x in self.inputs for array in x.sources()]

    def walk(self) -> Any:
        """What is encoded of the inputs."""
        for x in self.inputs:
            yield from x.walk()

    def arrays(self) -> Any:
        """The small inputs, which are kept in memory."""
        return [x.value for x in self.inputs if x.__class__ is Copied and isinstance(x.value, np.ndarray)]


def recipe_of(op: Op, inputs: tuple[Any, ...], statics: object, recipes: Recipes) -> list[Source | float] | None:
    """The inputs of a cheap operator as sources and constants; None where they are not such that it can run again."""
    found: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor):
            if x._unusual or x._array.__class__ is not np.ndarray or x._array.size == 0:
                return None
            found.append(Source(x, recipes))
        elif x is None or isinstance(x, (int, float, complex, np.generic)):
            found.append(x)
        else:
            return None
    return found
