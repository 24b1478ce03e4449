"""A tensor's memory as such: set_, storage(), and copies of tensors by copy, deepcopy and pickle."""

from __future__ import annotations

import copy
import copyreg
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import caller, devices
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import Setting, modes
from rushlight.dispatch import families
from rushlight.dispatch.declare import Array
from rushlight.dispatch.formats import channels_last, channels_last_3d, contiguous_format
from rushlight.dispatch.memory_views import view_at
from rushlight.dispatch.options import dense_order, strides_of
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.engine import inplace
from rushlight.engine.node import edge_of
from rushlight.ops.create.typed_storage import TypedStorage
from rushlight.ops.python.unread import noted
from rushlight.overrides.public import made
from rushlight.signs import turn, turned
from rushlight.storage import Storage, bytes_before, move, owner_of, root_of, storage_of
from rushlight.storage import copied as storage_copied
from rushlight.tensor import Tensor, alias, layout, strided, twin, wrap

# Other memory ---------------------------------------------------------------------------------------


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor share the memory of another tensor or of a storage; of nothing, make it empty.

    offset and stride count elements. It counts as a change in place. Raises RuntimeError for memory of another dtype, and
    while gradients are recorded for tensors that require one and to the memory of one that does.
    """
    if modes.grad and self.requires_grad and not self.is_leaf:
        raise RuntimeError("set_: cannot be called on a tensor that was computed with a graph: detach() it")
    if modes.grad and isinstance(source, Tensor) and source.requires_grad:
        raise RuntimeError("set_: the source requires grad, which the tensor on its memory would not: detach() the source, or "
                           "call set_() under no_grad()")  # fmt: skip
    inplace.check(self, self.requires_grad)
    array = memory_of(self, source)
    if size is not None:
        array = placed(array, storage_offset, tuple(int(n) for n in size), stride)
    if self._view is not None:
        Tensor._refresh(self)
        self._view = None
    inference = isinstance(source, Tensor) and source._inference
    if self._storage is None:
        storage_of(self)
    move(self, array, self._inference or inference)
    inplace.written(self, "set_")
    return self


def memory_of(self: Tensor, source: Storage | Tensor | TypedStorage | None) -> Array:
    """The array that `set_` shows of its source."""
    if source is None:
        return np.empty(0, self._held.dtype)
    if isinstance(source, Tensor):
        if source._held.dtype != self._held.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
        return source._held
    if not isinstance(source, (Storage, TypedStorage)):
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {kind_of(source)}")
    if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
        raise RuntimeError(f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {source.dtype} for "
                           "argument 1 'storage'")  # fmt: skip
    root = (source._untyped if isinstance(source, TypedStorage) else source).root
    return view_at(root, (root.nbytes // self._held.itemsize,), (self._held.itemsize,), 0, self._held.dtype)


def placed(array: Array, offset: int, shape: tuple[int, ...], stride: tuple[int, ...] | None) -> Array:
    """Memory seen from an offset with a shape and strides in elements.  Raises RuntimeError where it is too small."""
    root, unit = root_of(array), array.itemsize
    flat = view_at(root, (root.nbytes // unit,), (unit,), 0, array.dtype)
    steps = strides_of(np.empty(shape, np.bool_)) if stride is None else tuple(int(s) for s in stride)
    last = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    if all(shape) and not 0 <= last < flat.size:
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset} require "
                           f"{last + 1} elements, which are out of bounds for storage of {flat.size}")  # fmt: skip
    return view_at(flat, shape, tuple([s * unit for s in steps]), offset * unit)


def storage(self: Tensor) -> TypedStorage:
    """The storage as a sequence of elements."""
    return TypedStorage(self)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` exchanges a parameter with, where `torch.__future__.set_swap_module_params_on_conversion` asks for it:
    its own memory with the values of `other`, or with `assign` that of `other`.  Classes of tensors may say otherwise."""
    return other.detach() if assign else self.copy_(other).detach()


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where other processes see it; all tensors on that memory come with it.  (*) -> (*), this tensor.

    Raises RuntimeError for memory that a budget may move.

    >>> import rushlight as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    from rushlight.ops.create.shared import share_tensor

    share_tensor(self)
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the memory is where other processes see it: see `share_memory_`."""
    from rushlight.ops.create.shared import tensor_is_shared

    return tensor_is_shared(self)


def pin_memory(self: Tensor, device: device | str | int | None = None) -> Tensor:
    """Memory that a CUDA device can read by itself.  Raises RuntimeError where there is none."""
    if devices.instead_of_cuda is not None:
        return self
    raise RuntimeError("pin_memory: there is no accelerator to pin memory for")


def record_stream(self: Tensor, s: object) -> None:
    """Note that a queue of work of a GPU uses the memory: nothing to do where "cuda" means the CPU, else RuntimeError."""
    if devices.instead_of_cuda is None:
        raise RuntimeError("record_stream: there is no GPU, whose queues of work would use the memory")


def reinforce(self: Tensor, reward: object) -> None:
    """Removed from PyTorch: raises RuntimeError."""
    raise RuntimeError("reinforce() was removed.  Use torch.distributions instead: the gradient of -m.log_prob(action) * reward, "
                       "where m = Categorical(probs)")  # fmt: skip


for _method in (set_, storage, module_load, share_memory_, is_shared, pin_memory, record_stream, reinforce):
    setattr(Tensor, _method.__name__, _method)
Tensor._typed_storage = storage  # type: ignore[attr-defined]


@function()
def is_storage(obj: object) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (Storage, TypedStorage))


def storage_type(self: Tensor) -> Any:
    """The class of `storage()` for the dtype, as `torch.FloatStorage`; None for dtypes that have none."""
    return importlib.import_module("rushlight.compat.rooms.storage").class_of(self.dtype)


def _ambiguous(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether another order of dimensions, too, is one of memory: dimensions of size 1, equal steps, no elements."""
    return 0 in shape or (len(shape) > 1 and (1 in shape or len(set(steps)) < len(steps)))


def _fits_one(t: Tensor, formats: bool | list[Any] | tuple[Any, ...]) -> bool:
    """Whether a tensor is in one memory format alone, which is among `formats`."""
    known = [contiguous_format, *{4: [channels_last], 5: [channels_last_3d]}.get(t.ndim, [])]
    fit = [each for each in known if t.is_contiguous(memory_format=each)]
    return not isinstance(formats, bool) and len(fit) == 1 and fit[0] in formats


def dim_order(self: Tensor, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
    """The dimensions from outermost to innermost in memory.

    ambiguity_check: True, to raise RuntimeError where strides allow several orders; memory formats, of which one, and no other
        format, may be the tensor's all the same.
    """
    steps = strides_of(self._held)
    if not isinstance(ambiguity_check, (bool, list, tuple)):
        raise TypeError(
            f"dim_order(): ambiguity_check must be a bool or a list of memory formats, not {kind_of(ambiguity_check)}"
        )
    if ambiguity_check is not False and _ambiguous(self._held.shape, steps) and not _fits_one(self, ambiguity_check):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(len(steps)), key=lambda d: -steps[d]))


def volatile(self: Tensor) -> bool:
    """False, with a warning: PyTorch's mark of what is not recorded, before there was `no_grad`."""
    caller.warn("volatile was removed: it is always False, torch.no_grad() takes its place")
    return False


for _each in (storage_type, dim_order):
    setattr(Tensor, _each.__name__, _each)
Tensor.const_data_ptr = Tensor.data_ptr  # type: ignore[assignment, method-assign]
Tensor.name = None  # type: ignore[attr-defined]
Tensor.volatile = property(volatile)  # type: ignore[assignment]
NAMESPACES[""].update(StorageBase=Storage, UntypedStorage=Storage, TypedStorage=TypedStorage)


# Copies --------------------------------------------------------------------------------------------

SLOTS = frozenset(name for name in vars(Tensor) if name.startswith("_"))


def attributes(t: Tensor) -> dict[str, Any]:
    """The attributes that users have given to a tensor."""
    found = {name: value for name, value in t.__dict__.items() if name not in SLOTS}
    return found if t.__class__ is Tensor else {**found, **in_slots(t)}


def in_slots(t: Tensor) -> dict[str, Any]:
    """Those of them that lie in slots of a subclass."""
    slots = copyreg._slotnames(t.__class__)  # type: ignore[attr-defined]
    return {name: getattr(t, name) for name in slots if name not in Tensor.__slots__ and hasattr(t, name)}


def give(t: Tensor, attributes: dict[str, Any]) -> None:
    """Set attributes, in slots where the class of the tensor has them."""
    slots = copyreg._slotnames(t.__class__)  # type: ignore[attr-defined]
    for name, value in attributes.items():
        if name in slots:
            setattr(t, name, value)
        else:
            t.__dict__[name] = value


def like_class(t: Tensor, cls: type[Any]) -> Tensor:
    """A new tensor, a view of none, as an object of a subclass."""
    cls = getattr(cls, "stands_for", cls)
    return t if cls is Tensor else in_class(t, cls)


def in_class(t: Any, cls: type[Any]) -> Any:
    """A tensor that nobody else has, as an object of a subclass, with its place in the graph and as the view that it is."""
    made(cls)
    if t._meta:
        t.__class__ = cls
        return noted(t)
    fresh = object.__new__(cls)
    fresh._array, fresh._edge, fresh._storage, fresh._view = t._held, t._edge, t._storage, t._view
    fresh.__dict__.update(t.__dict__)
    return noted(turn(fresh, t._bits) if t._bits else fresh)


def _copy(self: Tensor) -> Tensor:
    """copy.copy: another tensor on the same memory; a leaf that requires grad if this one does."""
    if without_values(self):
        return rewrapped(*wrapped(self), state=attributes(self))
    inference = self._inference and not modes.inference
    fresh = like_class(twin(self) if inference else alias(self), self.__class__)
    give(fresh, attributes(self))
    return fresh.requires_grad_() if edge_of(self) is not None else fresh


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """copy.deepcopy: memory of its own, shared as the originals share it; with gradient and attributes.

    Raises RuntimeError for tensors that an operator computed with a graph.
    """
    known = memo.get(id(self))
    if known is not None:
        return known
    if not self.is_leaf:
        raise explained(
            RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment: "
                f"detach() this tensor of shape {list(self.shape)}, which {self.grad_fn.name()} computed."
            ),
            "copy-of-a-result",
        )
    fresh = cloned(self) if without_values(self) else like_class(wrap(copied(self, memo)), self.__class__)
    fresh._storage = None if self._bits or without_values(self) else memo.get(-id(owner_of(self)))
    memo[id(self)] = fresh
    give(fresh, copy.deepcopy(attributes(self), memo))
    if self._edge is not None:
        fresh.requires_grad_()
    if self._grad is not None:
        fresh._grad = copy.deepcopy(self._grad, memo)
    return fresh


def without_values(t: Tensor) -> bool:
    """Whether a tensor is of a class with ``__torch_dispatch__``, and has no memory."""
    return t._dispatched and getattr(t._held, "nowhere", False)


def cloned(t: Tensor) -> Tensor:
    """What the class gives for a copy.  Raises RuntimeError for one of another class."""
    with Setting("grad", False):
        found: Tensor = t.clone()
    if type(found) is not type(t):
        raise RuntimeError(
            f"The default implementation of __deepcopy__() for {type(t).__name__}, a tensor without memory, copies it by clone(), "
            f"for which its __torch_dispatch__ gave a {type(found).__name__}: let it return one of its own class"
        )
    return found


def copied(t: Tensor, memo: dict[int, Any]) -> Array:
    """A copy of the array of `t`; if others share its storage, in a copy of that, which they share too.

    One with bits gets what it shows, in memory that it shares with nobody.
    """
    if t._bits:
        return turned(t._held, t._bits)
    array, root = t._held, root_of(t._held)
    dense = root.flags.c_contiguous or root.flags.f_contiguous
    if t._storage is None or not dense or not array.size:
        return array.copy() if array.flags.c_contiguous else np.array(array, order="K", subok=False)
    fresh = storage_copied(t._storage.owner, memo)
    if root is array:
        return fresh.root
    return view_at(fresh.root, array.shape, array.strides, bytes_before(array), array.dtype)


def wrapped(t: Any) -> tuple[Any, ...]:
    """What PyTorch writes of a tensor without memory: its class, and what it says of itself."""
    held = t._held
    return type(t), t.dtype, tuple(held.shape), t.stride(), t.storage_offset(), t.layout, t.device, t.requires_grad


def rewrapped(
    cls: type[Any],
    dtype: dtype | None,
    size: object,
    stride: object,
    storage_offset: object,
    layout: layout | None,
    device: device | str | int | None,
    requires_grad: bool,
    state: dict[str, Any] | None = None,
) -> Tensor:
    """A tensor without memory, of a class with ``__torch_dispatch__``, as a file or `copy` has it."""
    options = {"strides": stride, "storage_offset": storage_offset, "layout": layout, "requires_grad": requires_grad}
    t: Any = Tensor._make_wrapper_subclass(cls, size, dtype=dtype, device=device, **options)  # type: ignore[attr-defined]
    give(t, state or {})
    return t


def _reduce(self: Tensor, protocol: int) -> tuple[Callable[..., Any] | tuple[Any, ...], ...]:
    warn_of_hooks(self)
    if without_values(self):
        return rewrapped, (*wrapped(self), attributes(self))
    order, shape, strides, flat = dense_order(self._held), self._held.shape, None, self._held
    if order is not None and not self._held.flags.c_contiguous:
        flat, strides = self._held.transpose(order), order
    elif order is None and all(shape):
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides_of(self._held), strict=True))
        if span <= self._held.size and min(self._held.strides, default=0) >= 0:  # expanded
            flat, strides = view_at(self._held, (span,), (self._held.itemsize,)), self._held.strides
    grad = edge_of(self) is not None
    return rebuilt, (
        self.__class__,
        np.ascontiguousarray(flat),
        shape,
        strides,
        order is None,
        grad,
        attributes(self),
        self._bits,
    )


def rebuilt(cls: type[Any], flat: Array, shape: tuple[Any, ...], strides: Any, by_strides: bool, requires_grad: bool,
            state: dict[Any, Any], bits: int = 0) -> Tensor:  # fmt: skip
    """A tensor as `_reduce` described it."""
    if strides is None:
        array = flat.reshape(shape)
    else:
        array = view_at(flat, shape, strides) if by_strides else flat.transpose(np.argsort(strides))
    t = turn(like_class(wrap(array), cls), bits)
    give(t, state)
    return t.requires_grad_() if requires_grad else t


def warn_of_hooks(t: Tensor) -> None:
    """Warn that hooks of a tensor are not kept where it is saved or copied, but those that `unserializable_hook` marks."""
    for hook in t._hooks.values() if t._hooks is not None else ():
        if getattr(hook, "__torch_unserializable__", False):
            continue
        caller.warn(f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate "
                      "the function with @torch.utils.hooks.unserializable_hook to suppress this warning")  # fmt: skip


Tensor.__copy__, Tensor.__deepcopy__, Tensor.__reduce_ex__ = _copy, _deepcopy, _reduce  # type: ignore[attr-defined,method-assign,assignment]


def as_subclass(self: Tensor, cls: Any) -> Any:
    """This tensor as an object of a subclass: a view.  (*) -> (*)

    Raises TypeError where `cls` is no subclass of Tensor, NotImplementedError for sparse and nested tensors.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}: Creating a Tensor subclass "
                        "from a class that does not inherit from Tensor is not possible")  # fmt: skip
    if self.layout is not strided:
        raise NotImplementedError(f"as_subclass: a tensor of the layout {self.layout} has no memory of its own that an object of class "
                                  f"{cls.__name__} could show: its parts have, as values() or to_dense()")  # fmt: skip
    return in_class(alias_op(self), cls)


@op(
    aten=("alias(input)",),
    view=True,
    linear=True,
    grads={"input": lambda g: g},
    batch=families.targeted,
)
def alias_op(input: Array) -> Array:
    """The same memory, a view.  (*) -> (*)"""
    return input.view()


def make_subclass(cls: type[Any], data: Tensor, require_grad: bool = False, **dispatch: object) -> Tensor:
    """A leaf of a subclass of Tensor on the memory of `data`."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"_make_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    fresh = like_class(alias(data), cls)
    return fresh.requires_grad_() if require_grad or dispatch.get("requires_grad") else fresh


Tensor.as_subclass = as_subclass  # type: ignore[assignment, method-assign]
Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]
