"""allow_mutation_on_saved_tensors: what was saved for backward is copied just before it is changed in place."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.events import INPLACE, Observation
from rushlight.basics.state import Setting, modes
from rushlight.dispatch.declare import Op
from rushlight.engine.node import Node
from rushlight.engine.saved import stale
from rushlight.storage import root_of, storage_of
from rushlight.tensor import Tensor, twin, wrap

OUTSIDE = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded: "
    "run the backward inside of it."
)


class _Handle:
    """What a node keeps for a saved tensor: the tensor is the context's."""

    __slots__ = ("__weakref__", "version", "where")

    def __init__(self, version: int, where: tuple[str, ...]):
        self.version, self.where = version, where


class _Saver:
    """Who saved a tensor, as error messages ask."""

    extra = None

    def __init__(self, where: tuple[str, ...]):
        self.where = where

    def name(self) -> str:
        """The operator's name."""
        return "an operator" if self.where is None else str(self.where[0])


class _AllowMutationOnSavedContext:
    """The state of one `allow_mutation_on_saved_tensors`: emptied when it ends.

    original: the saved tensors that were not changed; cloned: the copies of those that were. An entry goes when its node
    has run.
    """

    def __init__(self) -> None:
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        # By the identity of the array that owns the memory, which `.data` shares: a weak reference to that, and such to
        # handles, by the place and layout of their tensors.
        self.places: dict[int, tuple[Any, dict[Any, Any]]] = {}

    @property
    def tid_to_weakhandle(self) -> dict[int, _Handle]:
        """What is kept, changed or not, by numbers: for looking at how much it is."""
        return {id(handle): handle for handle in (*self.original, *self.cloned)}

    def clear(self) -> None:
        """Forget everything."""
        self.original.clear()
        self.cloned.clear()
        self.places.clear()

    def pack(self, value: Tensor) -> _Handle:
        """Keep a tensor here; whatever else hooks inside made of one passes."""
        if not isinstance(value, Tensor):
            return value
        storage, array = storage_of(value), value._held
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype, value._bits)
        places = self.places_in(root_of(array))
        ref = places.get(key)
        handle = None if ref is None else ref()
        if handle is None:
            handle = _Handle(storage.version, modes.saving)
            kept = twin(value)
            kept._storage = storage
            self.original[handle] = kept
            places[key] = weakref.ref(handle)
        return handle

    def places_in(self, root: Array) -> dict[Any, Any]:
        """What was saved of the memory that an array owns."""
        key, places = id(root), self.places
        if key not in places:
            places[key] = weakref.ref(root, lambda _: places.pop(key, None)), {}
        return places[key][1]

    def unpack(self, handle: _Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        if not isinstance(handle, _Handle):
            return handle
        kept = self.cloned.get(handle)
        if kept is not None:
            return kept
        kept = self.original.get(handle)
        if kept is None:
            raise AssertionError(OUTSIDE)
        storage = storage_of(kept)
        if storage.version != handle.version:  # by what is no operator: an optimizer, or another thread
            what = "a saved tensor" if handle.where is None else f"{handle.where[1]!r}"
            stale(_Saver(handle.where), what, kept.shape, storage.version, handle.version, storage)
        return kept

    def before_change(self, target: Tensor) -> None:
        """Copy what was saved of the memory of `target`."""
        held = target._held if self.places and isinstance(target, Tensor) else None
        places = self.places.get(id(root_of(held)), (None, {}))[1] if isinstance(held, np.ndarray) else {}
        for ref in [places.pop(key) for key in list(places)]:
            handle = ref()
            if handle is not None and handle in self.original:
                kept = self.original.pop(handle)
                if storage_of(kept).version == handle.version:
                    self.cloned[handle] = wrap(kept._array.copy())
                else:
                    self.original[handle] = kept

    # As an observer of operators -------------------------------------------------------------------

    passive = False

    def begin(self, kind: int, what: Node | Op | Tensor, inputs: tuple[Any, ...], statics: Any) -> None:
        """An operator is about to run."""
        if kind == INPLACE:
            self.before_change(inputs[0])

    def end(self, *_: Any) -> None:
        """Nothing to note."""


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """While active, tensors saved for backward may be changed in place: they are copied just before.

    Forward and backward must both run inside. What is saved and never changed costs nothing; a tensor saved by several
    operators is copied once. Gives the context's state, for looking at: `cloned` holds the copies.

    Contexts do not nest, nor go inside of `disable_saved_tensors_hooks`: RuntimeError. Raises AssertionError in a
    backward outside of the context. Changes that are made by no operator (an optimizer's step, another thread) are
    refused in backward as they are without this context.

    >>> import rushlight as torch
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = torch.ones(2, 3, requires_grad=True)
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     _ = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([[2., 2., 2.],
            [2., 2., 2.]])
    """
    if modes.mutation is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    if modes.saved_hooks_disabled is not None:
        raise RuntimeError(modes.saved_hooks_disabled)
    context = _AllowMutationOnSavedContext()
    modes.mutation = context
    try:
        with Setting("saved_hooks", ((context.pack, context.unpack),)), Observation(context):
            yield context
    finally:
        modes.mutation = None
        context.clear()
