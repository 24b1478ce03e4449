"""DLPack both ways: tensors and arrays of other libraries on the same memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.dispatch.registry import function
from rushlight.engine.node import edge_of
from rushlight.signs import CONJ
from rushlight.storage import expose
from rushlight.tensor import Tensor, wrap

BFLOAT, UINT = 4, 1  # DLPack's codes of kinds of numbers


def code_of(capsule: object) -> Any:
    """The byte in a capsule's description that says what kind of numbers it holds; the next one is their bits."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if '"dltensor' not in repr(capsule):
        raise RuntimeError(f"from_dlpack received an invalid capsule, {capsule!r}: each gives its memory once")
    versioned = "dltensor_versioned" in repr(capsule)
    found = pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    # Version, context, deleter and flags, of 8 bytes each, come first in the newer form; then address, device and dimensions.
    return (ctypes.c_uint8 * 2).from_address(found + (32 if versioned else 0) + 20)


def renamed(capsule: object, code: int) -> Any:
    """The capsule, which says from now on that its 16 bits are numbers of this kind: NumPy knows no bfloat16."""
    code_of(capsule)[0] = code
    return capsule


def _dlpack(self: Tensor, *, stream: object = None, max_version: tuple[int, ...] | None = None, dl_device: object = None,
            copy: bool | None = None) -> object:  # fmt: skip
    if edge_of(self) is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._bits:
        word = "conjugate" if self._bits & CONJ else "negative"
        raise BufferError(f"Can't export tensors with the {word} bit set: use tensor.resolve_conj() and resolve_neg()")
    if dtypes.is_complex_half(self._array.dtype):
        raise BufferError("Can't export complex32 tensors: NumPy has no such dtype. Use tensor.cfloat()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``: " + f"got {type(stream).__name__}")
    if stream not in (None, -1, 1):
        raise AssertionError("stream should be None on cpu: there are no streams")
    options: dict[str, Any] = {
        k: v for k, v in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)) if v is not None
    }
    if self._array.dtype.kind != "V":
        return expose(self._array).__dlpack__(**options)
    return renamed(expose(self._array).view(np.uint16).__dlpack__(**options), BFLOAT)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    if self._meta:
        raise ValueError("Unknown device type meta for Dlpack: there is no memory")
    return 1, 0


Tensor.__dlpack__, Tensor.__dlpack_device__ = _dlpack, _dlpack_device  # type: ignore[attr-defined, method-assign]


class Capsule:
    """A bare DLPack capsule as an object that gives it."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def writable(array: Array, unversioned: bool) -> Any:
    """`array`, with leave to write if an old capsule, which cannot say that it is read-only, holds its memory."""
    if array.flags.writeable or not unversioned or not array.size:
        return array

    low, high = np.lib.array_utils.byte_bounds(array)
    memory: Any = (ctypes.c_ubyte * (high - low)).from_address(low)
    memory.owner = array  # keeps the capsule alive
    start = array.__array_interface__["data"][0] - low
    return np.ndarray(array.shape, array.dtype, memory, start, array.strides)


def from_capsule(capsule: object) -> Any:
    """The array of a DLPack capsule."""
    unversioned = '"dltensor"' in repr(capsule)  # before it is used up
    short = tuple(code_of(capsule)) == (BFLOAT, 16)
    array = writable(np.from_dlpack(Capsule(renamed(capsule, UINT) if short else capsule)), unversioned)
    return array.view(dtypes.bfloat16.numpy) if short else array


def imported(producer: Array, copy: bool | None = None) -> Array:
    """The array on a producer's memory; read-only only if the producer's is."""
    if "bfloat16" in str(getattr(producer, "dtype", "")):
        array = from_capsule(producer.__dlpack__())
        return array.copy() if copy else array
    if copy is not None and np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        array = np.from_dlpack(producer, copy=copy)
    else:
        array = np.from_dlpack(producer)
        array = array.copy() if copy else array
    if array.flags.writeable:
        return array
    try:  # NumPy up to 2.2 makes all of them read-only, and later ones those of producers that cannot tell
        return from_capsule(producer.__dlpack__())
    except BufferError:  # read-only indeed
        return array


@function()
def from_dlpack(ext_tensor: Any, *, device: device | str | int | None = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule.

    copy: True copies, False raises where that is needed. Raises BufferError for arrays that are not on the CPU.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError(
                f"from_dlpack(): expected an object with __dlpack__ or a capsule, got {type(ext_tensor).__name__}"
            )
        return wrap(from_capsule(ext_tensor))
    array = imported(ext_tensor, copy)
    dtypes.of(array.dtype)
    return wrap(array)


@function()
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory."""
    return tensor.__dlpack__()
