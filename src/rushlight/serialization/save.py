"""Writing PyTorch's format."""

from __future__ import annotations

import copy
import ctypes
import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from typing import IO, Any, ClassVar

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.size import Size
from rushlight.engine.rows import Rows
from rushlight.nn.parameter import Buffer, Parameter, UninitializedTensorMixin
from rushlight.ops.create.memory import attributes, in_slots, warn_of_hooks, without_values, wrapped
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.serialization import options
from rushlight.serialization.archive import ArchiveWriter, folder_name
from rushlight.serialization.atomic import followed, replacing
from rushlight.serialization.legacy import MAGIC, PROTOCOL
from rushlight.serialization.names import STORAGE_TYPES, UNTYPED, StorageType
from rushlight.signs import CONJ, NEG
from rushlight.storage import Storage, memory, owner_of, root_of
from rushlight.tensor import Tensor, layout, strided


class Name:
    """A name that the file mentions, whether or not it can be imported here."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} stands for itself in a file only")


class Bytes:
    """The memory behind one or more tensors, numbered in the order of the file.

    owner: the array, or what brings it back where it is elsewhere: it is in memory only while it is written.
    """

    def __init__(self, owner: Any, key: str):
        self.owner, self.key = owner, key
        self.size: int = owner.nbytes
        if owner.__class__ is np.ndarray and not owner.flags.forc:
            low, high = np.lib.array_utils.byte_bounds(owner)
            self.size = high - low if owner.size else 0
        self.kind: StorageType | None = None
        self.identity: tuple[Any, ...] = ()

    def present(self) -> Any:
        """The array, None while it is elsewhere."""
        return self.owner if self.owner.__class__ is np.ndarray else self.owner.data

    def bytes(self) -> Any:
        """All of it, not copied."""
        if not self.size:
            return b""
        root = memory(self.owner)
        if root.flags.forc:
            return memoryview(root.reshape(-1, order="A").view(np.uint8))

        return memoryview((ctypes.c_ubyte * self.size).from_address(start_of(root))).cast("B")


def place_of(t: Tensor) -> tuple[Any, Any, int]:
    """An array with the shape, strides and dtype of a tensor, the owner of the memory, and where in it it starts, in bytes."""
    elsewhere = t._on_disk() if t._elsewhere else None
    if elsewhere is not None:
        return (*elsewhere, 0)
    array, owner = t._held, owner_of(t)
    if array.size and (min(array.strides, default=0) < 0 or any(s % array.itemsize for s in array.strides)):
        array = owner = np.ascontiguousarray(array)
    return array, owner, start_of(array) - start_of(root_of(array)) if array.size else 0


def start_of(root: Array) -> int:
    """The address of the first byte of an array."""
    return int(np.lib.array_utils.byte_bounds(root)[0])


_TENSOR = Name("torch._utils", "_rebuild_tensor_v2")
_TENSOR_OF_DTYPE = Name("torch._utils", "_rebuild_tensor_v3")
_PARAMETER = Name("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = Name("torch._utils", "_rebuild_parameter_with_state")
_WITH_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
_WRAPPER = Name("torch._utils", "_rebuild_wrapper_subclass")
_META = Name("torch._utils", "_rebuild_meta_tensor_no_storage")
_SPARSE = Name("torch._utils", "_rebuild_sparse_tensor")
_NESTED = Name("torch._utils", "_rebuild_nested_tensor")
_JAGGED = Name("torch.nested._internal.nested_tensor", "_rebuild_njt")
_LAYOUT = Name("torch.serialization", "_get_layout")
_TENSOR_TYPE, _SIZE, _DEVICE = Name("torch", "Tensor"), Name("torch", "Size"), Name("torch", "device")
_PICKLER: Any = pickle._Pickler  # the one in Python: only it can name what it cannot import
_NUMBERS = frozenset((int, bool, float, type(None)))
_PLAIN = frozenset((str, tuple, list, dict, OrderedDict, Name))  # of which no rule of ours asks


class Pickler(_PICKLER):  # type: ignore[misc]
    """Pickles as PyTorch does: tensors by PyTorch's constructors, their memory apart."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_PICKLER.dispatch)

    others: Any = None  # a pickler of another module, which is asked how to make other objects again

    def __init__(self, file: IO[bytes], protocol: int, older: bool = False):
        """older: as the format of before 1.6 has it, where a storage may be a view of another."""
        super().__init__(file, protocol)
        self.alone = not hasattr(super(), "reducer_override")  # whether nobody else has rules
        self.view: tuple[None, ...] = (None,) if older else ()
        self.storages: dict[int, Bytes] = {}  # by owner: several owners may be of one array
        self._arrays: dict[int, Bytes] = {}  # by the array, while it is there
        self._names: dict[Any, Name] = {}

    def save_name(self, name: Name) -> None:
        """Write a name."""
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode("ascii"))
        self.memoize(name)

    def save_dtype(self, dtype: Any) -> None:
        """Write a dtype as the name that it has in torch."""
        self.write(pickle.GLOBAL + f"torch\n{dtype.name}\n".encode("ascii"))
        self.memoize(dtype)

    dispatch[Name] = save_name
    dispatch[dtypes.dtype] = save_dtype

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object: as every pickler does, but numbers, of which there are most, without asking how each is to be written."""
        if obj.__class__ in _NUMBERS:
            self.dispatch[obj.__class__](self, obj)
        else:
            super().save(obj, save_persistent_id)

    def persistent_id(self, obj: object) -> Any:
        """Storages are named, not pickled."""
        if isinstance(obj, TypedStorage):
            return self._storage(obj.untyped().owner, obj.untyped().root, obj.dtype).identity
        if isinstance(obj, Storage):
            return self._storage(obj.owner, obj.root, None).identity
        return obj.identity if isinstance(obj, Bytes) else None

    def reducer_override(self, obj: object) -> Any:
        """How tensors and what belongs to them are made again."""
        if self.alone and obj.__class__ in _PLAIN:
            return NotImplemented
        if isinstance(obj, Tensor):
            return NotImplemented if isinstance(obj, UninitializedTensorMixin) else self._reduce_tensor(obj)
        if isinstance(obj, Size):
            return _SIZE, (tuple(obj),)
        if isinstance(obj, device):
            return _DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, layout):
            return _LAYOUT, (repr(obj),)
        ask = getattr(super(), "reducer_override", None) or getattr(self.others, "reducer_override", None)
        return NotImplemented if ask is None else ask(obj)

    def _reduce_sparse(self, t: Any) -> tuple[Any, ...]:
        """A sparse tensor: its layout and parts.  As in PyTorch, without whether it requires grad."""
        places = (t._indices_of,) if t.is_sparse else t._indices_of
        size, values = Size(t._sizes), t._values_of.detach()
        self._keep.extend((size, values))
        return _SPARSE, (t.layout, (*places, values, size, t._sorted) if t.is_sparse else (*places, values, size))

    def _reduce_nested(self, t: Any) -> tuple[Any, ...]:
        """A nested tensor: its values and where its components lie."""
        values = t._values.detach()
        if t.layout is strided:
            whole = (values.requires_grad_(t.requires_grad), *t.places())
            self._keep.extend(whole)
            return _NESTED, whole
        parts = {"values": values, "offsets": t.offsets(), "lengths": t.lengths(), "_ragged_idx": t._ragged_idx,
                 "_metadata_cache": {}, "requires_grad": t.requires_grad}  # fmt: skip
        self._keep.extend((parts, *parts.values()))
        return _JAGGED, (parts,)

    def _reduce_tensor(self, t: Tensor) -> object:
        warn_of_hooks(t)
        if t.is_nested:
            return self._reduce_nested(t)
        if Rows.sparse and t.layout is not strided:
            return self._reduce_sparse(t)
        function, args = self._constructor(t)
        slots = {} if t.__class__ is Tensor else in_slots(t)
        state: Any = {k: v for k, v in attributes(t).items() if k not in slots}
        state = (state, slots) if slots else state
        kind = getattr(t.__class__, "stands_for", t.__class__)
        if issubclass(kind, Parameter):  # of a subclass as of Parameter, as PyTorch writes it
            data = t.data
            self._keep.append(data)
            hooks: OrderedDict[int, Any] = OrderedDict()
            if state:
                return _PARAMETER_WITH_STATE, (data, t.requires_grad, hooks, state)
            return _PARAMETER, (data, t.requires_grad, hooks)
        if kind is Tensor or kind is Buffer:
            return (_WITH_TYPE, (function, _TENSOR_TYPE, args, state)) if state else (function, args)
        return _WITH_TYPE, (function, kind, args, state)

    def _constructor(self, t: Tensor) -> tuple[Name, tuple[Any, ...]]:
        """What makes a tensor, but for its class and attributes, and its arguments."""
        if t.is_meta:
            return _META, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad)
        return (_WRAPPER, wrapped(t)) if without_values(t) else self._plain(t)

    def _on_array(self, owner: Array) -> Bytes | None:
        """The memory of `owner` where it has a name already under which another owner of the same array was met."""
        array = owner if owner.__class__ is np.ndarray else owner.data
        found = self._arrays.get(id(array))
        return found if array is not None and found is not None and found.present() is array else None

    @property
    def _keep(self) -> list[Any]:
        """Temporary objects that must live as long as the memo that knows their identity."""
        found: list[Any] = self.__dict__.setdefault("_kept", [])
        return found

    def _plain(self, t: Tensor) -> tuple[Name, tuple[Any, ...]]:
        """PyTorch's constructor of a tensor and its arguments."""
        array, owner, start = place_of(t)
        storage = self._storage(owner, array, t.dtype)
        if start % array.itemsize:
            raise pickle.PicklingError(f"a tensor of {t.dtype} that starts {start} bytes into its storage: clone() it")
        stride = tuple(s // array.itemsize for s in array.strides)
        args: tuple[Any, ...] = (storage, start // array.itemsize, tuple(array.shape), stride, t.requires_grad)
        args = (*args, OrderedDict(), t.dtype) if storage.kind is UNTYPED else (*args, OrderedDict())
        if t._bits:  # as PyTorch names them
            args = (*args, {name: True for name, bit in (("conj", CONJ), ("neg", NEG)) if t._bits & bit})
        return (_TENSOR_OF_DTYPE if storage.kind is UNTYPED else _TENSOR), args

    def _storage(self, owner: Array, array: Array, dtype: Any) -> Bytes:
        """What a storage is named by.  dtype: of its elements, None for bytes of none."""
        storage = self.storages.get(id(owner)) or self._on_array(owner)
        if storage is None:
            storage = Bytes(owner, str(len(self.storages)))
            self._arrays[id(storage.present())] = storage
        if id(owner) not in self.storages:
            self.storages[id(owner)] = storage
            self._keep.append(owner)
        kind = STORAGE_TYPES.get(dtype, UNTYPED)
        if storage.kind is None:
            storage.kind = kind
            numel = storage.size if kind is UNTYPED else storage.size // dtype.itemsize
            name = self._names.setdefault(kind, Name(kind.module, kind.name))
            storage.identity = ("storage", name, storage.key, _tag(array), numel, *self.view)
        elif storage.kind is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{storage.kind} and {kind}; clone() one of them"
            )
        return storage


def _pickler(module: Any, file: IO[bytes], protocol: int, older: bool) -> Pickler:
    """What pickles with the rules of a module besides its own: those of a pickler in Python, or of `reducer_override`."""
    kind: Any = module.Pickler
    in_python = isinstance(kind, type) and issubclass(kind, _PICKLER)
    if not in_python:
        pickler = Pickler(file, protocol, older)
        pickler.others = None if kind is pickle.Pickler else kind(io.BytesIO(), protocol)
        pickler.alone = pickler.others is None
        return pickler
    own = {key: rule for key, rule in Pickler.dispatch.items() if _PICKLER.dispatch.get(key) is not rule}
    rules = copy.copy(kind.dispatch)
    rules.update(own)
    made: Pickler = type(Pickler.__name__, (Pickler, kind), {"dispatch": rules})(file, protocol, older)
    return made


def _tag(array: Array) -> str:
    """Where memory is said to be."""
    return options.location_tag(Storage(array)) if options.others() else "cpu"


def save(
    obj: object,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that PyTorch reads too.

    Args:
        obj: tensors, numbers, strings, and dictionaries and lists of them; other objects by pickling.
        f: path, or file open for writing bytes.  A file at a path appears whole or not at all: when the disk is full
            or the process dies, what was there before is unchanged.
        pickle_module: a module whose `Pickler` knows how to pickle other objects (`dill`, `cloudpickle`).
        pickle_protocol: of the pickle.
        _use_new_zipfile_serialization: False: the format of PyTorch before 1.6, no archive.

    Tensors that share memory share it after loading.  A view brings the whole of its storage: clone() it to save less.

    Example:
        >>> import io
        >>> import rushlight as torch
        >>> buffer = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, buffer)
        >>> _ = buffer.seek(0)
        >>> torch.load(buffer)
        {'weight': tensor([1., 1.])}
    """
    if not hasattr(pickle_module, "Pickler"):
        raise AttributeError(f"save: pickle_module must be a module with a Pickler, got {pickle_module!r}")
    if options.skipping() and not _use_new_zipfile_serialization:
        raise RuntimeError(
            "Cannot use skip_data=True with _use_new_zipfile_serialization=False: within skip_data() a file is an archive"
        )
    write = _write if _use_new_zipfile_serialization else _write_older
    if isinstance(f, (str, os.PathLike)):
        _check_place(os.fspath(f))
        with replacing(f) as file:
            write(obj, file, folder_name(f), pickle_protocol, pickle_module)
    elif callable(getattr(f, "write", None)):
        write(obj, f, "archive", pickle_protocol, pickle_module)
    else:
        raise AttributeError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f).__name__}"
        )


def _check_place(path: str | bytes) -> None:
    """Raise RuntimeError where no file can be written."""
    parent = os.path.dirname(followed(os.fsdecode(path))) or os.curdir
    if not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {os.fsdecode(os.path.dirname(path) or parent)} does not exist.")
    if not path or os.path.isdir(path):
        raise RuntimeError(f"save: {os.fsdecode(path)!r} is a directory: give the name of a file in it")


def _write(obj: object, file: IO[bytes], folder: str, protocol: int, module: object) -> None:
    data = io.BytesIO()
    pickler = _pickler(module, data, protocol, older=False)
    pickler.dump(obj)
    alignment = options.SAVING["storage_alignment"]
    with ArchiveWriter(file, folder, options.get_crc32_options(), alignment) as archive:
        with data.getbuffer() as pickled:
            archive.write("data.pkl", pickled)
        archive.write(".format_version", b"1")
        archive.write(".storage_alignment", str(alignment).encode())
        archive.write("byteorder", sys.byteorder.encode())
        for storage in {x.key: x for x in pickler.storages.values()}.values():
            data_of = options.Zeros(storage.size) if options.skipping() else storage.bytes()
            archive.write(f"data/{storage.key}", data_of)
        archive.write("version", b"3\n")


def _write_older(obj: object, file: IO[bytes], folder: str, protocol: int, module: object) -> None:
    """Pickles one after the other, and then the storages, each behind the number of its elements."""
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {"protocol_version": PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for head in (MAGIC, PROTOCOL, info):
        pickle.dump(head, file, protocol)
    pickler = _pickler(module, file, protocol, older=True)
    pickler.dump(obj)
    storages = {storage.key: storage for storage in pickler.storages.values()}
    pickle.dump(sorted(storages), file, protocol)
    for key in sorted(storages):
        file.write(struct.pack("=q", storages[key].identity[4]))
        file.write(storages[key].bytes())
