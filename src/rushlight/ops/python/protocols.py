"""Tensors among Python's objects: numbers, sequences, NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.dtype_words import older
from rushlight.basics.eights import EIGHTS
from rushlight.basics.errors import explained
from rushlight.basics.state import modes, special
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.formats import contiguous_format, has_format, is_format, memory_format, preserve_format
from rushlight.dispatch.named import named
from rushlight.dispatch.options import strides_of
from rushlight.dispatch.registry import function
from rushlight.engine.node import edge_of
from rushlight.signs import CONJ, turned
from rushlight.storage import expose
from rushlight.tensor import Tensor, look, wrap

# Questions -----------------------------------------------------------------------------------------


@function(method=True)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input._held.size)


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    shape = self.shape
    if dim is None:
        return shape
    if not shape:
        wrap_dim(dim, 0)
        raise IndexError(f"size(): Dimension specified as {dim} but tensor has no dimensions")
    return shape[wrap_dim(dim, len(shape))]


def stride(self: Tensor, dim: int | None = None) -> int | tuple[int, ...]:
    """How many elements to step in memory for each dimension, or for one."""
    steps = strides_of(self._held)
    if 0 in steps and 1 in self._held.shape:
        steps = with_steps(self._held.shape, steps)
    return steps if dim is None else steps[wrap_dim(dim, len(steps))]


def with_steps(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """Strides where a dimension of size 1 that NumPy gives none has that which `unsqueeze` gives: of all that lies behind it."""
    found = list(steps)
    for i in reversed(range(len(found))):
        if shape[i] == 1 and not found[i]:
            found[i] = max(shape[i + 1], 1) * found[i + 1] if i + 1 < len(found) else 1
    return tuple(found)


def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return int(self._held.ndim)


def is_contiguous(self: Tensor, *, memory_format: memory_format = contiguous_format) -> bool:
    """Whether the elements lie in memory in order (of `memory_format`) without gaps."""
    if not is_format(memory_format):
        raise TypeError("is_contiguous(): argument 'memory_format' must be torch.memory_format")
    return has_format(self._held, contiguous_format if memory_format is preserve_format else memory_format)


def element_size(self: Tensor) -> int:
    """Bytes of an element."""
    return int(self._held.itemsize)


@function(method=True)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a real floating-point one."""
    return input._held.dtype.kind in "fV"


@function(method=True)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return bool(dtypes.is_complex(input._held.dtype))


@function(method=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return bool(input.dtype.is_signed)


@function(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero.  Raises RuntimeError for other numbers of elements."""
    return bool(input)


@function(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return bool(input._held.shape == other._held.shape)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same memory with the same shape and strides."""
    a, b = self._held, tensor._held
    same = a.__array_interface__["data"] == b.__array_interface__["data"]
    return bool(same and a.shape == b.shape and a.strides == b.strides and self._bits == tensor._bits)


for _method in (size, stride, dim, is_contiguous, element_size, is_set_to):
    setattr(Tensor, _method.__name__, _method)
Tensor.ndimension, Tensor.nelement = dim, numel  # type: ignore[assignment, method-assign]
for _flag in ("is_cuda", "is_sparse", "is_quantized", "is_meta", "is_mkldnn", "is_nested", "is_mps", "is_xpu",
              "is_sparse_csr", "is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_xla"):  # fmt: skip
    setattr(Tensor, _flag, False)
Tensor.is_cpu = True


def is_pinned(self: Tensor, device: object = None) -> bool:
    """Never: there is no accelerator to pin memory for."""
    return False


setattr(Tensor, "is_pinned", is_pinned)  # noqa: B010


# Numbers -------------------------------------------------------------------------------------------


def item(self: Tensor) -> Any:
    """The one element as a Python number.  Raises RuntimeError for other numbers of elements."""
    array = self._array
    if modes.levels:
        look(array)
    if self._dispatched and array.size == 1 and special.classes.owns((self,)):
        return special.classes.called("_local_scalar_dense", self)
    if array.size != 1:
        raise explained(
            RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar"), "more-than-one-value"
        )
    value = array.item()
    return float(value) if array.dtype.kind == "V" else value


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers; of a 0-d tensor its number."""
    array = self._array
    if modes.levels:
        look(array)
    return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()


def only(self: Tensor) -> complex:
    """As `item`, for Python's conversions, which raise ValueError."""
    if self._held.size != 1:
        raise explained(
            ValueError("only one element tensors can be converted to Python scalars"), "more-than-one-value"
        )
    return item(self)


def _float(self: Tensor) -> float:
    return float(real(only(self), "double"))


def _int(self: Tensor) -> int:
    return int(real(only(self), "int64_t"))


def real(number: complex, kind: str) -> Any:
    """A number that is to become a real one.  Raises RuntimeError for one with an imaginary part."""
    if number.__class__ is not complex:
        return number
    if number.imag:
        raise RuntimeError(
            f"value cannot be converted to type {kind} without overflow: {number} is complex, take .real"
        )
    return number.real


def _complex(self: Tensor) -> complex:
    return complex(only(self))


def _index(self: Tensor) -> int:
    if self._held.dtype.kind not in "iub" or self._held.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def _reversed(self: Tensor) -> Tensor:
    return self if self._held.ndim == 0 else named.flip(self, (0,))


Tensor.__reversed__ = _reversed  # type: ignore[attr-defined]
Tensor.item, Tensor.tolist = item, tolist  # type: ignore[assignment, method-assign]
for _name, _number in (("__float__", _float), ("__int__", _int), ("__complex__", _complex), ("__index__", _index)):
    setattr(Tensor, _name, _number)


# NumPy ---------------------------------------------------------------------------------------------


def numpy(self: Tensor, *, force: bool = False) -> Array:
    """The tensor as a NumPy array on the same memory.

    Raises RuntimeError for tensors that require grad, unless `force`; TypeError for bfloat16, complex32 and 8 bits.
    """
    if not force and (modes.grad or modes.grad_asked) and edge_of(self) is not None:
        raise explained(
            RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
            "numpy-of-grad",
        )
    if self._bits and not force:
        word = "conj" if self._bits & CONJ else "neg"
        raise RuntimeError(f"Can't call numpy() on Tensor that has {'conjugate' if word == 'conj' else 'negative'} bit set. "
                           f"Use tensor.resolve_{word}().numpy() instead.")  # fmt: skip
    if self._held.dtype.kind == "V" or self._held.dtype in EIGHTS:
        raise TypeError(
            f"Got unsupported ScalarType {older(self.dtype)}: NumPy has no such dtype. Use tensor.float().numpy()."
        )
    if dtypes.is_complex_half(self._held.dtype):
        raise TypeError("Got unsupported ScalarType ComplexHalf: NumPy has no such dtype. Use tensor.cfloat().numpy().")
    return turned(self._held, self._bits) if self._bits else expose(self._array).view()


def _array_protocol(self: Tensor, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
    array = numpy(self) if self._held.dtype.kind != "V" or self._bits else expose(self._array)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(
    self: Tensor, array: Array, context: tuple[Any, ...] | None = None, return_scalar: bool = False
) -> Tensor:
    array = np.asarray(array)
    return wrap(array)


Tensor.numpy, Tensor.__array__, Tensor.__array_wrap__ = numpy, _array_protocol, _array_wrap  # type: ignore[assignment, attr-defined, method-assign]


@function()
def get_device(input: Tensor) -> int:
    """The index of the device; -1 for the CPU."""
    return -1


Tensor.get_device = get_device  # type: ignore[assignment, method-assign]
