"""How tensors and storages go to other processes: by the descriptor of their memory, which both have then."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from rushlight.dispatch.memory_views import view_at
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.create.memory import attributes, give, like_class, warn_of_hooks
from rushlight.ops.create.shared import descriptor_of, holding, share, share_tensor
from rushlight.signs import turn
from rushlight.storage import Storage, numbered, storage_of
from rushlight.tensor import Tensor, strided, wrap

__all__ = ["StorageWeakRef", "init_reductions", "rebuild_storage", "rebuild_tensor", "reduce_storage", "reduce_tensor"]

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


class StorageWeakRef:
    """A storage that may end, by its number: references to one are equal, and stay so when it is gone."""

    __slots__ = ("cdata",)

    def __init__(self, storage: Storage):
        self.cdata = storage._cdata

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """One of a number."""
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self.cdata not in numbered

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def reduce_storage(storage: Storage) -> Reduced:
    """The memory of a storage, which is moved where other processes see it, as they make it their own."""
    share(storage)
    root = storage.root
    return rebuild_storage, (reduction.DupFd(descriptor_of(storage)), root.dtype.str, root.shape, root.strides)


def rebuild_storage(descriptor: Any, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Storage:
    """The storage on memory that was received: the one that is known where it was received before."""
    return holding(descriptor.detach(), named(dtype), shape, strides)


def reduce_tensor(tensor: Tensor) -> Reduced:
    """A tensor as another process makes it on the same memory.

    Raises RuntimeError for one that was computed from what requires grad: a graph is of one process.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries: detach() the tensor before it is sent, as by a queue"
        )
    if tensor.layout is not strided or tensor.is_nested or tensor.is_meta:
        return tensor.__reduce_ex__(2)  # type: ignore[return-value]
    warn_of_hooks(tensor)
    share_tensor(tensor)
    storage = storage_of(tensor)
    held, root = tensor._held, storage.root
    start = held.__array_interface__["data"][0] - root.__array_interface__["data"][0] if held.size else 0
    place = held.dtype.name, held.shape, held.strides, start
    return rebuild_tensor, (
        type(tensor),
        reduce_storage(storage),
        place,
        tensor.requires_grad,
        tensor._bits,
        attributes(tensor),
    )


def rebuild_tensor(
    cls: type[Tensor], storage: Reduced, place: tuple[Any, ...], requires_grad: bool, bits: int, state: dict[str, Any]
) -> Tensor:
    """A tensor on memory that was received."""
    make, args = storage
    memory = make(*args)
    dtype, shape, strides, start = place
    plain = wrap(view_at(memory.root, shape, strides, start, named(dtype)))
    plain._storage = memory
    t: Tensor = turn(like_class(plain, cls), bits)
    give(t, state)
    return t.requires_grad_() if requires_grad else t


def named(dtype: str) -> np.dtype[Any]:
    """The dtype of a name, with those of 16 bits and fewer that NumPy has not."""
    try:
        return np.dtype(dtype)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
        return found


def init_reductions() -> None:
    """Have the standard library's pickler for processes send tensors so."""
    for kind in (Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(Storage, reduce_storage)
