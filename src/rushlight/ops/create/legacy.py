"""Names of types and the tensors' legacy constructors: type(), Tensor(...), FloatTensor and the like."""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.devices import CPU
from rushlight.basics.devices import device as device_class
from rushlight.basics.dtype_words import OLDER, older
from rushlight.basics.size import Size
from rushlight.basics.state import modes, set_mode
from rushlight.dispatch.options import check_device, made, size_of, uninitialized
from rushlight.dispatch.registry import NAMESPACES, function, known_as
from rushlight.dispatch.results import return_types
from rushlight.ops.create.from_python import array_from
from rushlight.ops.create.memory import as_subclass, in_class
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.ops.elementwise.convert import to_dtype
from rushlight.storage import Storage
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import dtype

BY_STRING = {f"torch.{prefix}Tensor": next(d for d in dtypes.ALL if d.name == name) for name, prefix in OLDER.items()}


def type_string(dtype: dtype) -> str:
    """The name of a dtype's tensor type, such as torch.FloatTensor."""
    return f"torch.{older(dtype)}Tensor"


class _TypeMeta(type):
    dtype: Any

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> None:
        if bases:
            raise TypeError(
                f"type 'torch.{bases[0].__name__}' is not an acceptable base type: derive {name} from torch.Tensor"
            )
        super().__init__(name, bases, body)

    def __instancecheck__(cls, instance: Tensor) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy(cls.dtype, args, kwargs)


_NAMED = frozenset({"device", "size", "data", "other", "storage"})  # what the constructors take by name


def legacy(dtype: dtype, args: tuple[Any, ...], kwargs: dict[str, Any], any_dtype: bool = False) -> Tensor:
    """`torch.FloatTensor(...)`: of sizes uninitialized memory, of data a copy, of a tensor a view, of nothing an empty one."""
    if kwargs and not _NAMED.issuperset(kwargs):
        got = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        raise TypeError(f"new() received an invalid combination of arguments - got ({got}), but it takes no "
                        f"{', '.join(sorted(set(kwargs) - _NAMED))}: torch.tensor() takes dtype and requires_grad")  # fmt: skip
    if kwargs.get("device") is not None:
        check_device(kwargs["device"])
    if kwargs.get("size") is not None:
        args = (*args, Size(kwargs["size"]))
    for name in ("data", "other", "storage"):
        if kwargs.get(name) is not None:
            args = (*args, kwargs[name])
    if not args:
        return made(np.empty(0, dtype.numpy))
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype is not dtype and not any_dtype:
            raise TypeError(f"expected {dtype} (got {first.dtype})")
        return as_subclass(first, Tensor)  # a view, with its gradients
    if len(args) == 1 and type(first).__name__ == "Size":
        return made(uninitialized(np.empty(tuple(first), dtype.numpy)))
    if len(args) == 1 and isinstance(first, (set, frozenset, dict)):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    if len(args) == 1 and isinstance(first, (Storage, TypedStorage)):
        return _on_storage(first, dtype)
    if len(args) == 1 and not isinstance(first, int) and hasattr(first, "__len__"):
        return made(array_from(first, dtype.numpy))
    if len(args) == 1 and isinstance(first, float):
        raise TypeError("new(): data must be a sequence (got float)")
    try:
        return made(uninitialized(np.empty(size_of("new", args), dtype.numpy)))
    except TypeError:
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}), but expected sizes as "
                        "ints, a sequence of data, or a Tensor") from None  # fmt: skip


def _on_storage(storage: Storage | TypedStorage, dtype: dtype) -> Tensor:
    """A tensor that shares the memory of a storage.  Raises RuntimeError for one of another dtype."""
    kind = getattr(storage, "dtype", dtype)
    if kind is not dtype:
        raise RuntimeError(
            f"Expected a Storage of type {older(dtype)} or an UntypedStorage, but got type {older(kind)}"
        )
    return made(np.empty(0, dtype.numpy)).set_(storage)  # type: ignore[arg-type]


def _tensor_new(cls: type[Any], *args: object, **kwargs: object) -> Any:
    """`torch.Tensor(...)`: as torch.FloatTensor(...), or of the default dtype's type."""
    t = legacy(dtypes.get_default_dtype(), args, kwargs, True)
    return t if cls is Tensor else in_class(t, cls)


Tensor.__new__ = _tensor_new  # type: ignore[method-assign]


def _publish() -> None:
    space = NAMESPACES.setdefault("", {})
    for name, dtype in BY_STRING.items():
        short = name.removeprefix("torch.")
        space[short] = _TypeMeta(
            short,
            (),
            {
                "dtype": dtype,
                "is_cuda": False,
                "is_sparse": False,
                "__module__": "torch",
                "__doc__": f"Tensors of {dtype}.",
            },
        )


_publish()


def type_(self: Tensor, dtype: object = None, non_blocking: bool = False, **kwargs: object) -> Tensor | str:
    """Without arguments the name of this tensor's type; else this tensor in a dtype or type of that name."""
    if dtype is None:
        return type_string(self.dtype)
    if isinstance(dtype, str):
        if dtype.removeprefix("torch.cuda.") != dtype:
            check_device("cuda")
        if dtype not in BY_STRING:
            raise ValueError(f"invalid type: {dtype!r}. Known are {', '.join(BY_STRING)}")
        dtype = BY_STRING[dtype]
    elif dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    elif isinstance(dtype, type):  # torch.FloatTensor and torch.sparse.FloatTensor
        dtype = getattr(dtype, "dtype", dtype)
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"dtype must be a type, str, or dtype object, got {type(dtype).__name__}")
    return to_dtype(self, dtype)


def new(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    """As the constructor of this tensor's type: sizes, data or nothing."""
    return legacy(self.dtype, args, kwargs)


Tensor.new = new  # type: ignore[assignment, method-assign]
Tensor.type = known_as(type_, "type", "Tensor")  # type: ignore[method-assign]


@function()
def typename(obj: object) -> str:
    """The name of an object's type, or of a class or function; of tensors that of their tensor type."""
    if isinstance(obj, Tensor):
        return obj.type()
    if isinstance(obj, ModuleType):
        return obj.__name__
    kind: Any = obj if hasattr(obj, "__qualname__") else type(obj)
    module = "" if kind.__module__ in ("builtins", "__builtin__", None) else f"{kind.__module__}."
    return module + kind.__qualname__


@function()
def set_default_tensor_type(t: object) -> None:
    """Set the dtype of new floating-point tensors by a tensor type or its name."""
    found = BY_STRING.get(t) if isinstance(t, str) else getattr(t, "dtype", None)
    if found is None:
        raise TypeError(f"invalid type object: {t!r}")
    caller.warn_once("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
                     "torch.set_default_device() as alternatives.")  # fmt: skip
    dtypes.set_default_dtype(found)


@function()
def get_default_device() -> device:
    """The device of new tensors."""
    return modes.default_device or CPU


@function()
def set_default_device(device: device | str | int | None) -> None:
    """Set the device of new tensors of this thread; None is the CPU."""
    found = CPU if device is None else device_class(device)
    set_mode("default_device", None if found == CPU else found)


@function()
def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


@function(method=True)
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: never."""
    return False


NAMESPACES.setdefault("", {}).update(e=math.e, pi=math.pi, inf=math.inf, nan=math.nan, newaxis=None,
                                     return_types=return_types)  # fmt: skip
