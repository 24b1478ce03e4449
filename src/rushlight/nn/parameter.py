"""Parameter and Buffer: tensors that a module finds by itself, and their lazy forms without a shape yet."""

from __future__ import annotations

import sys
from functools import partial
from types import MethodType
from typing import Any, NoReturn

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.overrides.protocol import INERT, overrides, switched_off
from rushlight.overrides.public import made
from rushlight.tensor import Tensor, alias

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


def _on_memory_of(data: object, cls: type[Any]) -> Tensor:
    """A leaf of class `cls` on the memory of `data`, or an empty one for None."""
    if data is None:
        data = ops.empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__}: `data` must be a Tensor or None, got {type(data).__name__}")
    made(cls)
    return alias(data, cls)


def _is_own(data: object, cls: type[Any]) -> bool:
    """Whether `data` is of a class that overrides functions, so that a parameter or buffer of it is of that class too."""
    if data.__class__ in INERT or not isinstance(data, Tensor) or cls not in (Parameter, Buffer):
        return False
    return overrides(data.__class__) or data._dispatched


def _marked(tensor: Tensor, data: object, mark: str) -> Any:
    """`tensor`, an object of the class of `data`, as a parameter or buffer: what isinstance says that it is."""
    if type(tensor) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance "
            f"of the same type, but return type {type(tensor).__name__} was found instead. To use the type as a Parameter, "
            "please correct the detach() semantics defined by its __torch_function__() or __torch_dispatch__() implementation."
        )
    setattr(tensor, mark, True)
    return tensor


class _Marking(type):
    """The class of Parameter and Buffer, of which marked tensors of other classes are instances too."""

    _mark: str

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return "_mark" in cls.__dict__ and isinstance(instance, Tensor) and cls._mark in instance.__dict__


_ParameterMeta = _BufferMeta = _Marking  # as PyTorch calls it


@switched_off
class Parameter(Tensor, metaclass=_Marking):
    """A tensor that is registered as a parameter when it is assigned to an attribute of a Module.

    Args:
        data: Tensor (*), whose memory is shared, not copied.  Default: an empty one.
        requires_grad: whether gradients are accumulated in `.grad`.

    Raises RuntimeError where `requires_grad` is asked for with an integer or bool dtype.

    >>> import rushlight as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    _mark = "_is_param"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if _is_own(data, cls):
            return _marked(data.detach().requires_grad_(requires_grad), data, "_is_param")
        parameter = _on_memory_of(data, cls)
        if requires_grad:
            if not (parameter.is_floating_point() or parameter.is_complex()):
                raise RuntimeError(
                    "Only Tensors of floating point and complex dtype can require gradients, "
                    f"got {parameter.dtype}: pass requires_grad=False"
                )
            parameter.requires_grad_()
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = self.__class__(self.data.clone(), self.requires_grad)
        return known

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        plain = alias(self)
        plain.requires_grad_(self.requires_grad)
        return f"Parameter containing:\n{plain!r}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = {name: value for name, value in self.__dict__.items() if not _is_engine_slot(name)}
        return _rebuild, (self.__class__, self.data, self.requires_grad, state)


def _is_engine_slot(name: str) -> bool:
    """Whether the engine keeps this entry of a tensor's `__dict__` (gradient, hooks): never copied or pickled."""
    return name.startswith("_") and name in _ENGINE_SLOTS


_ENGINE_SLOTS = frozenset(name for name in vars(Tensor) if name.startswith("_") and not name.startswith("__"))


def _rebuild(cls: type[Any], data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Tensor:
    """A pickled parameter or buffer."""
    tensor = alias(data, cls)
    tensor.requires_grad = requires_grad
    tensor.__dict__.update(state)
    return tensor


@switched_off
class Buffer(Tensor, metaclass=_Marking):
    """A tensor that is registered as a buffer when it is assigned to an attribute of a Module.

    Args:
        data: Tensor (*), whose memory is shared.
        persistent: whether the buffer is part of the module's `state_dict`.
    """

    _mark = "_is_buffer"
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if _is_own(data, cls):
            buffer = _marked(data.detach().requires_grad_(data.requires_grad), data, "_is_buffer")
            buffer.persistent = persistent
            return buffer
        buffer = _on_memory_of(data, cls)
        if data is not None and data.requires_grad:
            buffer.requires_grad_()
        buffer.persistent = persistent
        return buffer

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return repr(_unmarked(self))

    def __format__(self, spec: str) -> str:
        return format(_unmarked(self), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self.__class__, self.data, self.requires_grad, {"persistent": self.persistent})


def _unmarked(buffer: Tensor) -> Tensor:
    """The tensor as which a buffer is shown."""
    plain = alias(buffer)
    plain.requires_grad_(buffer.requires_grad)
    return plain


_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
    "initialize the parameters before accessing their attributes."
)

_NOT_YET = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a `LazyModule` or explicitly "
    "manipulating `torch.nn.parameter.{}` objects. When using LazyModules Call `forward` with a dummy batch to "
    "initialize the parameters before calling torch functions"
)
# Methods that ask for no values and no shape; attributes are read, too.  Others convert what is not there yet.
_BEFORE = frozenset("requires_grad_ copy_ is_complex is_floating_point get_device".split())
_CONVERT = frozenset("half float double char short int long cuda cpu to".split())


def _refuse(name: str, kind: type, *args: object, **kwargs: object) -> NoReturn:
    """Raise the error for a function that is given a tensor without a shape."""
    raise ValueError(_NOT_YET.format(name, kind.__name__))


def _converted(this: Any, method: str, *args: object, **kwargs: object) -> Any:
    """What a conversion makes of the tensor without elements; the parameter or buffer itself where it has nothing to do."""
    data = this.data
    made = getattr(data, method)(*args, **kwargs)
    return this if made is data else made


class UninitializedTensorMixin:
    """What lazy parameters and buffers share: no shape until `materialize` gives them one."""

    __slots__ = ()
    cls_to_become: Any = Tensor

    _unusual = _elsewhere = True

    def __getattribute__(self, name: str) -> Any:
        """An attribute; methods that would compute raise ValueError when they are called, until `materialize` is."""
        if name in _CONVERT:
            return partial(_converted, self, name)
        found = object.__getattribute__(self, name)
        if name.startswith("_") or name in _BEFORE or type(found) is not MethodType:
            return found
        return found if found.__func__ is not vars(Tensor).get(name) else partial(_refuse, f"Tensor.{name}", type(self))

    @property
    def _array(self) -> Any:
        """What operators read: refused."""
        asks = sys._getframe(2)
        name = asks.f_code.co_name  # "call" in what is written out, which may know its public name
        _refuse(getattr(asks.f_globals.get("public"), "name", "an operator" if name == "call" else name), type(self))

    @_array.setter
    def _array(self, value: object) -> None:
        this: Any = self
        this._held = value

    def _on_page(self, cls: type) -> tuple[type, Any]:
        """See `tensor.alias`."""
        this: Any = self
        return cls, this._held

    @property
    def shape(self) -> Any:
        """Refused: RuntimeError until `materialize` is called."""
        raise RuntimeError(_NO_SHAPE)

    def __len__(self) -> int:  # noqa: PLE0303
        """Refused: ValueError until `materialize` is called."""
        _refuse("Tensor.__len__", type(self))

    def __getitem__(self, index: object) -> Any:
        """Refused: ValueError until `materialize` is called."""
        _refuse("Tensor.__getitem__", type(self))

    def __setitem__(self, index: object, value: object) -> None:
        """Refused: ValueError until `materialize` is called."""
        _refuse("Tensor.__setitem__", type(self))

    def __contains__(self, element: object) -> bool:
        """Refused: ValueError until `materialize` is called."""
        _refuse("Tensor.__contains__", type(self))

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        """Refused: ValueError until `materialize` is called."""
        _refuse("Tensor.__array__", type(self))

    def size(self, dim: int | None = None) -> Any:
        """Refused: RuntimeError until `materialize` is called."""
        raise RuntimeError(_NO_SHAPE)

    def share_memory_(self) -> Any:
        """Refused: RuntimeError until `materialize` is called."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def materialize(self, shape: Any, device: device | str | int | None = None, dtype: dtype | None = None) -> None:
        """Become an ordinary, uninitialised parameter or buffer of this shape, in place."""
        this: Any = self
        values = ops.empty(
            (shape,) if isinstance(shape, int) else tuple(shape),
            device=device or this.device,
            dtype=dtype or this.dtype,
        )
        this.__class__ = self.cls_to_become
        this.data = values

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        known = memo.get(id(self))
        if known is None:
            this: Any = self
            cls: Any = type(self)
            known = memo[id(self)] = cls(this.requires_grad, device=this.device, dtype=this.dtype)
        return known

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known before the first forward of its lazy module."""

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> Any:
        parameter = alias(ops.empty(0, device=device, dtype=dtype), cls)
        parameter.requires_grad = requires_grad
        return parameter

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__class__, (self.requires_grad,)


@switched_off
class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known before the first forward of its lazy module."""

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        persistent: bool = True,
    ) -> Any:
        buffer = alias(ops.empty(0, device=device, dtype=dtype), cls)
        buffer.requires_grad = requires_grad
        buffer.persistent = persistent
        return buffer

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self.__class__, self.data, self.requires_grad, {})


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
