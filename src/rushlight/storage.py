"""Storage: the bytes that a tensor and its views share, and the version counter of their in-place changes."""

from __future__ import annotations

import itertools
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.errors import explained
from rushlight.basics.lazily import lazily
from rushlight.basics.references import untraced
from rushlight.basics.state import modes


def root_of(array: Any) -> Any:
    """The array that owns the memory of `array`: the end of its chain of bases."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def in_order(array: Any) -> Any:
    """An array with its axes as they lie in memory, outermost first."""
    return array.transpose(sorted(range(array.ndim), key=lambda i: -abs(array.strides[i])))


def memory_of(root: Array) -> Array:
    """All bytes of an owner, in the order in which they lie, whatever the order of its axes: no copy."""
    if not root.flags.c_contiguous:
        root = in_order(root)
    if not root.flags.c_contiguous:  # another library's, with gaps
        low, high = np.lib.array_utils.byte_bounds(root)
        root = np.lib.stride_tricks.as_strided(root, ((high - low) // root.itemsize,), (root.itemsize,))
    return root.reshape(-1).view(np.uint8)


def _bytes_of(given: Any, device: object) -> object:
    """So many bytes, or those of a sequence of numbers.  uint8 (n)"""
    if device is not None and str(device) != "cpu":
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {device}")
    if isinstance(given, int):
        if given < 0:
            raise RuntimeError(f"torch.UntypedStorage(): a storage cannot have {given} bytes")
        return np.empty(given, np.uint8)
    if not isinstance(given, Sequence):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}")
    wrong = next((item for item in given if not isinstance(item, int)), None)
    if wrong is not None:
        raise RuntimeError(
            "torch.UntypedStorage(): tried to construct a storage from a sequence "
            f"({type(given).__name__}), but one of the items was of type {type(wrong).__name__} instead of int"
        )
    return np.array([item & 255 for item in given], np.uint8)


def _mapped(filename: str | os.PathLike[str], shared: bool, nbytes: int) -> object:
    """The bytes of a file, mapped.  uint8 (nbytes)"""
    if shared:
        os.close(os.open(filename, os.O_RDWR | os.O_CREAT))
    with open(filename, "r+b" if shared else "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if nbytes > size and shared:
            file.truncate(nbytes)
        elif nbytes > size:
            raise RuntimeError(f"{filename} has {size} bytes, and {nbytes} were asked for")
        if not (nbytes or size):
            return np.empty(0, np.uint8)
        mapped = mmap.mmap(file.fileno(), nbytes or size, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return np.frombuffer(mapped, np.uint8)


class Storage:
    """What all views of one array share.  Made when a second tensor needs it: until then a tensor's version is 0."""

    __slots__ = ("__weakref__", "root", "since", "version", "writer")
    since: int  # the number of the node before the first recorded change in place, once there was one
    copy_: Callable[..., Storage]  # which come with typed storages
    resize_: Callable[[int], Storage]
    page: Any = None  # what brings the memory back, where it may be on disk
    counted: Any  # the class that it has once it shares its version counter with another storage

    def __init__(self, array: Any = 0, *, device: Any = None):
        try:
            self.root = root_of(array)
        except AttributeError:  # as programs make storages of their own
            self.root = _bytes_of(array, device)
        self.version = 0
        self.writer: Any = None  # who changed it last (operator, file:line), while anomaly mode records

    @property
    def changes(self) -> int:
        """How often the memory was changed in place."""
        return self.version

    def nbytes(self) -> int:
        """Bytes of the owning array: 0 once they were freed."""
        return 0 if hasattr(type(self.root), "freed_bytes") else int(self.root.nbytes)

    def data_ptr(self) -> int:
        """Address of the first byte: 0 once they were freed."""
        return 0 if hasattr(type(self.root), "freed_bytes") else int(self.root.__array_interface__["data"][0])

    size = __len__ = nbytes

    @property
    def _cdata(self) -> int:
        """A number that no other storage has, nor will have."""
        return number_of(self)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> Storage:
        """A storage on the bytes of a file, read when they are needed.

        shared: whether changes go to the file, which is made as long as needed; nbytes: how many, all for 0.  Raises
        RuntimeError for a file that cannot be opened, or is too short.
        """
        try:
            return cls(_mapped(filename, shared, nbytes))
        except OSError as error:
            raise RuntimeError(f"UntypedStorage.from_file: unable to open file {filename}: {error}") from error

    def untyped(self) -> Storage:
        """The storage itself."""
        return self

    def type(self) -> str:
        """The name of the class."""
        return "torch.storage.UntypedStorage"

    @property
    def _untyped(self) -> Storage:
        return self

    def bytes(self) -> Any:
        """The bytes as an array on this memory.  uint8 (nbytes)"""
        return memory_of(self.root)

    def __getitem__(self, index: Any) -> Any:
        """A byte, or for a slice the storage of a part of the bytes, on the same memory."""
        if not isinstance(index, (int, slice)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if isinstance(index, int) and not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        found = self.bytes()[index]
        if not isinstance(index, slice):
            return int(found)
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        # From a buffer: an array's own slice would lead back to the whole.
        return Storage(np.frombuffer(memoryview(found), np.uint8) if found.size else np.empty(0, np.uint8))

    def __setitem__(self, index: Any, value: Any) -> None:
        settle(self.root)
        self.bytes()[index] = value

    def tolist(self) -> list[int]:
        """The bytes."""
        return list(map(int, self.bytes()))

    def fill_(self, value: int) -> Storage:
        """Set every byte."""
        self[:] = value
        return self

    def clone(self) -> Storage:
        """A storage on a copy of the bytes."""
        return Storage(self.root.copy(order="K"))

    __copy__ = clone

    @property
    def owner(self) -> Any:
        """What owns the memory as long as it lives: the array, or the page that brings it back as another array."""
        return self.root

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        return copied(self.owner, memo)

    def __repr__(self) -> str:
        lines = "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


Storage.__name__ = Storage.__qualname__ = "UntypedStorage"  # as users know it


_numbers = itertools.count(1)
_number: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()
numbered: weakref.WeakValueDictionary[int, Storage] = weakref.WeakValueDictionary()


def number_of(storage: Storage) -> int:
    """The number of a storage, given to it when it is first asked for."""
    found = _number.get(storage)
    if found is None:
        found = _number[storage] = next(_numbers)
        numbered[found] = storage
    return found


def copied(owner: Array, memo: dict[int, Any]) -> Storage:
    """What `copy.deepcopy` makes of a storage with this owner: one for all tensors and storages on that memory."""
    fresh: Storage | None = memo.get(-id(owner))
    if fresh is None:
        fresh = memo[-id(owner)] = Storage(memory(owner).copy(order="K"))
        memo.setdefault(id(memo), []).append(owner)  # its ids speak of what has to live on
    return fresh


def memory(owner: Any) -> Any:
    """The array of an owner: itself, or what a page brings back."""
    return owner if owner.__class__ is np.ndarray else owner.get()


def owner_of(tensor: Any) -> Any:
    """The owner of a tensor's memory."""
    page = None if tensor._storage is None else tensor._storage.page
    return root_of(tensor._held) if page is None else page


class Counter:
    """A version counter apart from the memory: of tensors that have come to lie on different memory, or that may be gone.

    root: an array of their dtype, without elements: to whoever asks for versions this is a storage.
    """

    __slots__ = ("root", "version")
    writer: Any = None

    def __init__(self, version: int, dtype: np.dtype[Any]):
        self.version, self.root = version, np.empty(0, dtype)


_VERSION: Any = Storage.__dict__["version"]


class Counted(Storage):
    """One of several storages with one version counter, which stands in the slot for the version."""

    __slots__ = ()

    @property
    def version(self) -> int:
        return _VERSION.__get__(self).version  # type: ignore[no-any-return]

    @version.setter
    def version(self, value: int) -> None:
        _VERSION.__get__(self).version = value


Storage.counted = Counted


class Reshaped(Counted):
    """The storage of a tensor that `.data` gave another shape: to nodes that saved the tensor before, it was changed."""

    __slots__ = ("shape", "shapes", "since")

    def __init__(self, array: Array, counter: Counter, shapes: list[tuple[int, ...]], since: int):
        """counter: as the tensor had it; shapes: all that it has had, where the first counts as no change; since: when it
        got the one that it has now, as a number in the order of nodes."""
        self.root, self.writer = root_of(array), "`.data`, which has another shape now"
        self.shapes, self.shape, self.since = shapes, shapes.index(array.shape), since
        _VERSION.__set__(self, counter)

    @property
    def version(self) -> int:
        return self.changes + (self.shape << 32)

    @version.setter
    def version(self, value: int) -> None:
        _VERSION.__get__(self).version = value - (self.shape << 32)

    @property
    def changes(self) -> int:
        return _VERSION.__get__(self).version  # type: ignore[no-any-return]


def reshape(tensor: Any, former: tuple[Storage, tuple[int, ...]], since: int) -> None:
    """Note that `.data` gave a tensor another shape, or other memory after it had.  former: its storage and shape before; since: see `Reshaped`."""
    storage, shape = former
    shapes = storage.shapes if isinstance(storage, Reshaped) else [shape]
    now = tensor._held.shape
    if now == shapes[0]:  # as one that was freed for a while: what was saved holds again
        tensor._storage = parted(storage, tensor._held)
        return
    if now not in shapes:
        shapes.append(now)
    if isinstance(storage, Reshaped) and now == shape:
        since = storage.since
    tensor._storage = Reshaped(tensor._held, counter_of(storage), shapes, since)


class InferenceStorage(Storage):
    """The storage of a tensor made in inference mode: it counts no versions, so nothing on it can be saved.

    But within a transformation of a function, which runs backward itself: for what it captured, as for a constant.
    """

    __slots__ = ()

    @property
    def version(self) -> int:
        if modes.transform is not None:
            return 0
        raise explained(
            RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
                "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`: Inference tensors do not track version "
                "counter."
            ),
            "inference-tensor",
        )

    @version.setter
    def version(self, value: int) -> None:
        pass

    @property
    def changes(self) -> int:
        if modes.transform is not None:
            return 0
        raise explained(RuntimeError("Inference tensors do not track version counter."), "inference-tensor")


def storage_of(tensor: Any) -> Storage:
    """The storage of a tensor, made now if there was none."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = (InferenceStorage if tensor._inference else Storage)(tensor._held)
    return storage  # type: ignore[no-any-return]


def refuse_inference(tensor: Any) -> None:
    """Raise RuntimeError for an inference tensor that is to be changed outside of inference mode."""
    if tensor._inference and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )


STEP = "the step of an optimizer"  # who changed what a step changes


def bump(tensor: Any, by: str | None = None) -> None:
    """Count an in-place change of the tensor's memory.  by: who made it, for the message of who needed the former values."""
    storage = tensor._storage
    if storage is None:
        storage = storage_of(tensor)
    if not tensor._inference:
        storage.version += 1
        storage.writer = by


def move(tensor: Any, array: Array, inference: bool = False) -> None:
    """Let a tensor see the memory of `array`, or of an inference tensor.

    It keeps its version counter, which views of it that still see the former memory share.
    """
    former, told = tensor._held, settle(tensor._held) if dependents else ()
    storage, tensor._held = tensor._storage, array
    for who in told:
        if hasattr(who, "went"):
            who.went(tensor, root_of(former))
    if tensor._inference or inference:
        tensor._inference = tensor._unusual = inference
        tensor._storage = InferenceStorage(array) if inference else None
    elif storage is not None and storage.root is not root_of(array):
        tensor._storage = parted(storage, array)


def parted(storage: Storage, array: Array) -> Storage:
    """Another storage, on the memory of `array`, with the version counter of `storage`."""
    counter, fresh = counter_of(storage), Storage(array)
    fresh.__class__ = fresh.counted
    _VERSION.__set__(fresh, counter)
    fresh.writer = storage.writer
    return fresh


def counter_of(storage: Storage) -> Counter:
    """The version counter of a storage, to be held without its memory."""
    if not isinstance(storage, Counted):
        counter = Counter(storage.version, storage.root.dtype)
        storage.__class__ = storage.counted
        _VERSION.__set__(storage, counter)
    return _VERSION.__get__(storage)  # type: ignore[no-any-return]


def held(tensor: Any) -> tuple[int, int]:
    """How many hold the memory of a tensor with a storage, and its array."""
    return getrefcount(tensor._storage.root), getrefcount(tensor._held)


class _Probe:
    """What stands for a tensor that has its memory for itself."""

    def __init__(self, array: Array):
        self._held, self._storage = array, Storage(array)


@untraced
def _held_alone() -> dict[bool, tuple[int, int]]:
    return {True: held(_Probe(np.empty(2))), False: held(_Probe(np.empty(2)[:1]))}


# What `held` says of a tensor that is alone on its memory: its array is the memory, or the only view of it.
ALONE = _held_alone()


def alone(tensor: Any) -> bool:
    """Whether nobody but this tensor holds its memory: no view, no array, no graph."""
    whole = storage_of(tensor).root is tensor._held
    return held(tensor) == ALONE[whole]


# Memory that values are computed again from -------------------------------------------------------

# By the id of the array that owns the memory: (weak reference to it, weak reference to who computes from it).
dependents: dict[int, list[tuple[Any, Any]]] = {}
_turn = threading.RLock()  # of those who change it; the collector may come in between, and bring others
exposed: dict[int, Any] = {}  # by id: weak references to owning arrays that NumPy shows to others
UNSEEN = 1 << 16  # bytes of what `is_exposed` asks `exposed` for: what is smaller is copied where it matters
LEAST = 1 << 10  # bytes from which on `exposed` knows an array: what stores leave as it is may change as it likes


def _in_child() -> None:
    """After a fork: the thread that held the lock may not be here."""
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def depend(array: Array, who: Any) -> int:
    """Have `who.settle(root)` called before the memory of `array` changes; a key for `independent`."""
    root = root_of(array)
    key, entry = id(root), (weakref.ref(root), weakref.ref(who))
    with _turn:
        entries = None
        while entries is None or dependents.get(key) is not entries:  # what others were among may be away since
            entries = dependents.setdefault(key, [])
            entries.append(entry)
    return key


def independent(keys: Any, who: object) -> None:
    """Forget what an object depended on, which dies; and others that have, whom the collector ended."""
    with _turn:
        for key in keys:
            left = [entry for entry in dependents.pop(key, ()) if (x := entry[1]()) is not None and x is not who]
            if left:
                dependents[key] = left


def _those(root: Array) -> Any:
    """Who depends on memory, who do so no longer: weak references, with one to the memory before each."""
    with _turn:
        return dependents.pop(id(root), ())


def leave(array: Array) -> list[Any]:
    """Who depends on memory that goes elsewhere, for `arrive`."""
    root = root_of(array)
    return [who for reference, who in _those(root) if reference() is root] if dependents else []


def arrive(array: Any, waiting: list[Any]) -> None:
    """The memory is back, in an array that is another object."""
    for reference in waiting:
        who = reference()
        if who is not None:
            who.keys.append(depend(array, who))


class Changes:
    """large: how many changes of memory of at least `least` bytes there were while anybody counted them."""

    large, least, counting = 0, 1 << 18, 0

    def count(self, more: int) -> None:
        """So many more count changes: while any do, `settle` looks at every one."""
        self.counting += more
        if self.counting > 0:
            dependents.setdefault(0, [])
        else:
            dependents.pop(0, None)


changes = Changes()
guests: Any = None  # told of tensors that come from files, while what they hold may be sent to disk


def settle(array: Array) -> list[Any] | tuple[()]:
    """The memory of `array` is about to change, perhaps unseen: who computes values from it has to do so now; who that is."""
    if not dependents or getattr(array, "interpreted", False):
        return ()
    root = root_of(array)
    if root.nbytes >= changes.least:
        changes.large += 1
    told = []
    for reference, who in _those(root):
        found = who() if reference() is root else None
        if found is not None:
            found.settle(root)
            told.append(found)
    return told


def expose(array: Array) -> Array:
    """`array`, which is shown to those who may change its memory unseen, now or later."""
    if getattr(array, "interpreted", False):
        return array
    root = root_of(array)
    if root.nbytes >= LEAST and not is_shown(root):
        key = id(root)
        exposed[key] = weakref.ref(root, lambda _: exposed.pop(key, None))
    if dependents:
        settle(root)
    return array


def is_shown(array: Array) -> bool:
    """Whether others may change the memory of an array unseen, which is not the smallest."""
    root = root_of(array)
    found = exposed.get(id(root))
    return not root.flags.owndata or (found is not None and found() is root)


def is_exposed(array: Array) -> bool:
    """Whether others may change the memory of a large array unseen."""
    root = root_of(array)
    return not root.flags.owndata or (root.nbytes >= UNSEEN and is_shown(root))


def bytes_before(array: Array) -> int:
    """Bytes between the start of the owning array and the first element of `array`."""
    root = root_of(array)
    if root is array or not array.size:  # to ask for addresses takes a microsecond and more
        return 0 if root.__class__ is np.ndarray else getattr(root, "offset", 0)
    return int(array.__array_interface__["data"][0] - root.__array_interface__["data"][0])


def offset_of(array: Any) -> int:
    """Elements between the start of the owning array and the first element of `array`."""
    if getattr(array, "interpreted", False):  # inside vmap: of the first sample
        array = array.memory()
    return bytes_before(array) // max(int(array.itemsize), 1)


# What plain pickles of PyTorch's tensors call, and older classes.
_OLDER = ("_LegacyStorage", "_StorageBase", "_load_from_bytes", "_warn_typed_storage_removal")
__getattr__ = lazily(__name__, places=dict.fromkeys(_OLDER, "rushlight.compat.rooms.storage"))
