"""What a node keeps for its backward, and the checks when it is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from numpy import ndarray

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.errors import explained
from rushlight.basics.state import modes, set_mode, special
from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.overrides.protocol import users
from rushlight.storage import Storage, storage_of
from rushlight.tensor import LEAF, Tensor, twin, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.engine.node import Edge

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
)

DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use "
    "out-of-place `.detach()` instead"
)


class Stop(BaseException):
    """Hooks have all that a second run of a function is for: the rest of it need not run.

    It is no Exception, so that a function that catches those does not catch it.
    """


class Constant:
    """A saved Python number."""

    __slots__ = ("_array",)
    _storage = None

    def __init__(self, value: Array | complex):
        self._array = value


class SavedOutput:
    """An output kept by the node that made it: the memory without the tensor, whose edge would close a cycle.

    watch: who is told when others change that memory, once it is shown to them (see `keeping/results.py`).
    """

    __slots__ = ("array", "nr", "storage", "tangents", "version", "watch")
    _storage = None

    def __init__(self, tensor: Tensor, nr: int):
        self.array, self.storage, self.nr = tensor._array, storage_of(tensor), nr
        self.version, self.tangents = self.storage.version, None
        self.watch: Any = None

    def tensor(self, edge: Edge | None) -> Tensor:
        """The output again, with its place in the graph."""
        t = wrap(self.array)
        t._storage, t._edge = self.storage, edge
        if self.tangents is not None:
            t._tangents = self.tangents
        return t


class DispatchedOutput(SavedOutput):
    """An output whose class has `__torch_dispatch__`: what that says of its `detach` stands for the memory."""

    __slots__ = ("kept",)

    def __init__(self, tensor: Tensor, nr: int):
        super().__init__(tensor, nr)
        self.kept = special.classes.detached(tensor)

    def tensor(self, edge: Edge | None) -> Tensor:
        """The output again, with its place in the graph."""
        t: Tensor = special.classes.detached(self.kept)
        t._edge = edge
        return t


class SavedTensor:
    """A place in a node that keeps a tensor: `register_hooks` says how it is packed and unpacked there."""

    __slots__ = ()

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        """Keep what `pack_hook(tensor)` returns instead; `unpack_hook` gives the tensor back for backward."""
        raise NotImplementedError


class OfView:
    """A saved output of an operation in place on a view, with the edge that the view had afterwards.

    That edge leads through the base to the node that saved this: it is made for one use, or it would close a cycle.
    """

    __slots__ = ("edge", "saved")
    _storage = None

    def __init__(self, saved: SavedOutput, edge: Edge | None):
        self.saved, self.edge = saved, edge

    def tensor(self, edge: Edge | None) -> Tensor:
        """The output again, as the view of the changed base."""
        return self.saved.tensor(self.edge)


class Packed:
    """A tensor in the form that a pack hook gave it."""

    __slots__ = ("hooks", "like", "outer", "packed", "stages", "tangents", "version", "watch", "where")
    _storage = None

    def __init__(self, tensor: Tensor, hooks: tuple[Any, ...], where: tuple[str, ...] | None = None, own: bool = False):
        """hooks: pairs (pack, unpack), innermost first; each packs what the one before returned.

        where: (operator, argument or result) for hooks that ask what they pack, in `modes.saving`. own: whether the
        tensor is a result of the node that keeps this: hooks see it detached, or what they keep would close a cycle.
        """
        self.hooks, self.tangents, self.where = hooks, tensor._tangents, where
        self.watch: Any = None
        held = tensor._held
        self.like: Any = (held.shape, held.dtype) if held.__class__ is ndarray else None
        self.outer = outer_edges(tensor, own)
        self.version = storage_of(tensor).version if own else 0
        former, modes.saving = modes.saving, where
        try:
            self.packed, self.stages = pack(detached(tensor) if own else tensor, hooks)
        except Exception as error:
            self.note(error, "pack")
            raise
        finally:
            modes.saving = former

    def unpack(self) -> Tensor:
        """The tensor, with its place in the graph."""
        value = self.restored(self.packed)
        if self.like is not None and value._held.__class__ is ndarray:
            self.check(value)
        return value

    def restored(self, value: Any) -> Tensor:
        """The tensor that unpack hooks make of what the pack hooks made."""
        try:
            for (_, restore), stage in zip(reversed(self.hooks), reversed(self.stages), strict=True):
                value = users(restore, value) if stage is None else back(restore, value, stage)
        except Exception as error:
            self.note(error, "unpack")
            raise
        if not isinstance(value, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(value).__name__}"
            )
        return value

    def check(self, value: Tensor) -> None:
        """Raise RuntimeError for a tensor of another shape or dtype than the one that was packed."""
        shape, dtype = self.like
        held = value._held
        if held.shape == shape and held.dtype == dtype:
            return
        what, who = ("a tensor", "") if self.where is None else (repr(self.where[1]), f", which {self.where[0]} saved")
        raise RuntimeError(
            f"Output of saved tensor unpack_hook for {what}{who} has shape {list(held.shape)} and dtype {value.dtype}, but the "
            f"tensor that was packed has shape {list(shape)} and dtype {dtypes.of(dtype)}: an unpack_hook must give back what "
            "its pack_hook got, so convert it there"
        )

    def note(self, error: Exception, hook: str) -> None:
        """Add to an error in a hook which tensor it was about."""
        if self.where is not None:
            error.add_note(f"This happened in the {hook} hook for {self.where[1]!r}, saved by {self.where[0]}.")

    @property
    def _array(self) -> Array:
        found: Array = self.unpack()._array
        return found

    def tensor(self, edge: Edge | None) -> Tensor:
        """The tensor with edge `edge`, or the leaf that it was; what the hook gave back itself where neither has a place."""
        found = self.unpack()
        plain = edge is None and self.tangents is None and not any(e is not None for e in self.outer)
        if plain and not found.requires_grad and found._tangents is None:
            return found
        t = twin(found)
        t._storage = storage_of(found)
        t._edge = edge
        t = in_outer_graphs(t, self.outer)
        if self.tangents is not None:
            t._tangents = self.tangents
        return t


def outer_edges(tensor: Tensor, own: bool) -> tuple[Any, ...]:
    """The edges of a tensor, and of the tensors of all samples in it, from the innermost level outwards.

    own: whether the tensor is a result of the node that keeps them: that node gives its edge itself.
    """
    edges = [None if own else place(tensor)]
    if tensor._held.__class__ is ndarray:
        return tuple(edges)
    while getattr(tensor._array, "interpreted", False):
        tensor = tensor._array.tensor
        edges.append(place(tensor))
    return tuple(edges)


def place(tensor: Tensor) -> Any:
    """The edge of a tensor that is about to be saved: itself, if it is a leaf."""
    return tensor if tensor._edge is LEAF else tensor._edge


def in_outer_graphs(t: Tensor, edges: tuple[Any, ...]) -> Tensor:
    """What a hook unpacked, with the places in the graphs of outer levels that its original had."""
    array = t._array
    if len(edges) > 1 and getattr(array, "interpreted", False):
        inner = twin(array.tensor)
        inner._storage, inner._tangents = storage_of(array.tensor), array.tensor._tangents
        made: Tensor = array.level.batched(in_outer_graphs(inner, edges[1:]), array.dim)
        made._storage, made._edge = t._storage, t._edge
        t = made
    if t._edge is None:
        t._edge = edges[0]
    return t


class PackedResults:
    """Auxiliary results as hooks packed them; an index unpacks one."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]):
        self.items = items

    def replaced(self, items: tuple[Any, ...]) -> PackedResults:
        """The same results, packed otherwise."""
        return PackedResults(items)

    def __getitem__(self, k: int) -> Array:
        item = self.items[k]
        return item._array if isinstance(item, Packed) else item


def detached(tensor: Tensor) -> Tensor:
    """A tensor on the same memory, outside the graph."""
    t = twin(tensor)
    t._storage = storage_of(tensor)
    return t


class Sparing(tuple[Any, Any]):
    """A pair of hooks that need not be given what can be computed again from what else they were given."""


class Copying(tuple[Any, Any]):
    """A pair of hooks that keeps a copy of each tensor, which nobody is shown: whatever becomes of the tensor, it says the same."""

    __slots__ = ()


class Anything(tuple[Any, Any]):
    """A pair of hooks that packs whatever those inside of it return, not the tensors in it alone."""

    __slots__ = ()


def pack(tensor: Tensor, hooks: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """Run pack hooks, innermost first, without recording: what they make of the tensor, and what each was given.

    A hook after the first packs the tensors in what the one before returned. Raises RuntimeError for a hook that changes the
    tensor in place.
    """
    storage, value = storage_of(tensor), tensor
    version = storage.version
    stages: list[Any] = []
    grad = set_mode("grad", False)
    try:
        for pair in hooks:
            stage = None
            if isinstance(value, Tensor) or pair.__class__ is Anything:
                value = pair[0](value)
            else:
                value, stage = through(pair[0], value)
            stages.append(stage)
    finally:
        set_mode("grad", grad)
    if storage.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return value, stages


def through(pack_hook: Callable[..., Any], value: object) -> tuple[Any, Any]:
    """What a hook makes of the tensors in what another returned: its leaves in a tuple, and which of them were tensors."""
    leaves, spec = tree_flatten(value)
    places = tuple(i for i, x in enumerate(leaves) if isinstance(x, Tensor))
    for i in places:
        leaves[i] = pack_hook(leaves[i])
    return tuple(leaves), (places, spec)


def back(unpack_hook: Callable[..., Any], value: tuple[Any, ...], stage: tuple[Any, ...]) -> object:
    """The reverse of `through`."""
    places, spec = stage
    leaves = list(value)
    for i in places:
        leaves[i] = users(unpack_hook, leaves[i])
    return tree_unflatten(leaves, spec)


def active_hooks() -> tuple[Any, ...]:
    """The pack/unpack pairs of this thread, innermost first; raises where disable_saved_tensors_hooks forbids."""
    return tuple(reversed(modes.saved_hooks))


def freed(node: Any, doing: str = "") -> None:
    """Raise the error for a second run through `node`.  doing: what was done instead, with a blank after it."""
    raise explained(
        RuntimeError(
            f"{doing}{FREED}Here the graph was freed at {node.name()}. Specify retain_graph=True the first time if this graph must be "
            "used twice; if the values come from an earlier training step, detach() them there."
        ),
        "backward-twice",
    )


def stale(
    node: Any, what: str, shape: tuple[int, ...], version: int, expected: int, storage: Storage, edge: Any = None
) -> NoReturn:
    """Raise the error for a saved tensor that was changed in place.

    node: who saved it, as `what`; edge: who computed it, if anybody.
    """
    if version >> 32 != expected >> 32:  # see `storage.Reshaped`
        raise RuntimeError(
            f"one of the variables needed for gradient computation, which {node.name()} saved as {what}, has the shape "
            f"{list(shape)} now, which `.data` gave it: its gradient would be that of another computation. Assign `.data` of "
            "another shape after backward, or before forward"
        )
    made = "" if edge is None or not hasattr(edge, "node") else f"is output {edge.nr} of {edge.node.name()} and which "
    changed = f" It was changed by {storage.writer}." if storage.writer else ""
    trace = node.extra.traceback if node.extra is not None else None
    saved = f" It was saved at:\n{trace}" if trace else ""
    hint = "" if trace else " Hint: enable anomaly detection to see which lines saved and changed it, with " \
        "torch.autograd.set_detect_anomaly(True)."  # fmt: skip
    raise explained(
        RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{older(storage.root.dtype)}Tensor {list(shape)}], which {made}{node.name()} saved as {what}, is at "
            f"version {version}; expected version {expected} instead.{changed}{saved} Use the out-of-place form of the change, "
            f"or clone() the tensor before it ({math.prod(shape) * storage.root.dtype.itemsize} bytes).{hint}"
        ),
        "changed-in-place",
    )
