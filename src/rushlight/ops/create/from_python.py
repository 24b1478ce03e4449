"""Python data to arrays: scalars, nested lists, NumPy arrays, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.dtype_words import as_number
from rushlight.basics.dtypes import is_complex, real_of, warn_of_lost_parts
from rushlight.basics.foreign import is_theirs, kind_of
from rushlight.kernels.dispatch import recast
from rushlight.tensor import Tensor

ndarray = np.ndarray
INT64 = np.dtype(np.int64)
EXACT = 1 << 53  # the integers below are all in float64
LARGE = frozenset((np.dtype(np.uint64), np.dtype(np.float64)))  # what NumPy takes integers beyond int64 for
WIDE, PLAIN = frozenset((np.float64, np.complex128)), frozenset((float, int, bool, complex))


def array_from(data: Any, dtype: np.dtype[Any] | None, name: str = "tensor") -> Array:
    """A new array of the data.  dtype: a NumPy dtype, or None to infer it.

    Raises RuntimeError for what no dtype can be inferred of, TypeError for what is no number of the dtype that is given.
    """
    if isinstance(data, Tensor):
        data = data._array
    if isinstance(data, (ndarray, np.generic)):
        if not data.dtype.isnative:
            raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte "
                             "orders is currently not supported.")  # fmt: skip
        dtypes.of(data.dtype)
        return convert(np.array(data), dtype) if dtype is not None else np.array(data, dtypes.of(data.dtype).numpy)
    if isinstance(data, (float, int, complex)):
        return scalar_array(data, dtype)
    return nested_array(data, None, name) if dtype is None else _numbers(data, dtype, name)


def _numbers(data: Any, dtype: np.dtype[Any], name: str) -> Array:
    """An array of nested sequences of numbers, in a dtype.  Raises TypeError where something else is among them."""
    try:
        return nested_array(data, dtype, name)
    except RuntimeError as error:
        if not str(error).startswith("Could not infer dtype"):
            raise
        kind = str(error).rpartition(" ")[2]
        raise TypeError(f"must be real number, not {kind}") from None


def scalar_array(value: Any, dtype: np.dtype[Any] | None) -> Array:
    """A 0-d array of a Python number."""
    if dtype is None:
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        dtype = dtypes.default_of_category(dtypes.scalar_category(value)).numpy
    return checked(np.asarray(value), dtype, value)


def checked(array: Array, dtype: np.dtype[Any], data: float | list[Any] | tuple[float, ...]) -> Array:
    """Values from Python in `dtype`.  Raises where they do not fit."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "O":
        if dtype.kind in "fcWVb":
            return recast(array.astype(np.bool_ if dtype.kind == "b" else np.float64), dtype)
        raise ValueError("Overflow when unpacking long long")
    if is_complex(array.dtype) and not is_complex(dtype):
        raise TypeError("must be real number, not complex")
    if array.dtype == np.uint64 and dtype == np.int64:
        raise ValueError("Overflow when unpacking long long")
    if dtype.kind in "iu" and array.size and array.dtype.kind != "b":
        if array.dtype.kind == "f" and dtype.itemsize == 8 and not np.abs(array).max() < EXACT:
            return whole(data, array.shape, dtype)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if dtype == np.uint64 and array.dtype.kind == "i" and array.min() < 0:
            raise OverflowError(f"can't convert negative int to unsigned: {array.min()} to uint64")
        if dtype.kind == "u" and not (array.dtype.kind == "f" and array.min() < 0 and below_0(data)):
            low = -high  # small negative integers wrap around
        if not (low <= array.min() and array.max() <= high):
            raise RuntimeError(f"value cannot be converted to type {as_number(dtypes.of(dtype))} without overflow")
    with np.errstate(all="ignore"):
        return recast(array, dtype)


def whole(data: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers of which float64 does not hold the digits in an integer dtype of 64 bits.  Raises where they do not fit."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    found: list[int] = []
    for x in np.array(data, object).flat:
        if low <= x <= high:
            found.append(int(x))
        elif isinstance(x, int):
            raise ValueError("Overflow when unpacking long long")
        else:
            raise RuntimeError(f"value cannot be converted to type {as_number(dtypes.of(dtype))} without overflow")
    return np.array(found, dtype).reshape(shape)


def below_0(data: object) -> bool:
    """Whether a floating-point number among nested lists is negative."""
    if isinstance(data, (list, tuple)):
        return any(below_0(x) for x in data)
    return isinstance(data, (float, np.floating)) and bool(data < 0)


def convert(array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`, as C converts."""
    if array.dtype == dtype:
        return array
    if is_complex(array.dtype) and not is_complex(dtype) and dtype.kind != "b":
        warn_of_lost_parts(dtypes.of(array.dtype), dtypes.of(dtype))
        array = real_of(array)
    with np.errstate(all="ignore"):
        return recast(array, dtype)


def nested_array(data: list[Any] | tuple[float, ...], dtype: np.dtype[Any] | None, name: str) -> Array:
    """An array of nested sequences."""
    leaf = check_sequence(data, name)
    try:
        array = slow_nested(data, name) if isinstance(leaf, Tensor) and leaf._array.ndim else np.array(data)
    except (ValueError, RuntimeError):
        array = slow_nested(data, name)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    large = array.dtype.kind == "O" and dtype is not None and dtype.kind in "fcWVb"  # integers beyond int64 fit there
    if array.dtype.kind in "OUS" and not (large and all(isinstance(x, (int, float, complex)) for x in array.flat)):
        array = slow_nested(data, name)
    if isinstance(leaf, ndarray):
        warn_of_arrays()
    if dtype is None:
        dtype = inferred(array, data, leaf)
    elif isinstance(leaf, np.integer) and array.dtype.kind == "f":
        return checked(array, dtype, data)  # other numbers are among them
    elif isinstance(leaf, (ndarray, np.generic)) or (isinstance(leaf, Tensor) and not is_complex(array.dtype)):
        return convert(array, dtype)
    return checked(array, dtype, data)


def inferred(array: Array, data: Any, leaf: float) -> np.dtype[Any]:
    """The dtype of `data`, whose first element is `leaf`."""
    kind = array.dtype.kind
    if (
        leaf.__class__ in (int, bool)
        and array.dtype in LARGE
        and array.size
        and not np.abs(array).max() < 1 << 63
        and integers(data)
    ):
        raise ValueError("Overflow when unpacking long long")
    if kind in "fc" and array.dtype.itemsize == (8 if kind == "f" else 16) and not holds(data, WIDE):
        default = dtypes.get_default_dtype()
        return default.numpy if kind == "f" else default.to_complex().numpy
    if leaf.__class__ is int:
        return INT64
    return dtypes.of(array.dtype).numpy


def integers(data: Any) -> bool:
    """Whether nested sequences hold integers and bools of Python alone."""
    if isinstance(data, (list, tuple)):
        return all(integers(x) for x in data)
    return isinstance(data, int)


def holds(data: list[Any], kinds: frozenset[type]) -> bool:
    """Whether nested sequences hold an element of one of these types, or a tensor or array of their dtype."""
    if isinstance(data, (ndarray, Tensor)):
        return data.dtype in (np.float64, np.complex128, dtypes.float64, dtypes.complex128)
    if isinstance(data, (list, tuple)):
        found = set(map(type, data))
        return not found.isdisjoint(kinds) or (
            not found <= PLAIN and any(holds(x, kinds) for x in data if x.__class__ not in PLAIN))  # fmt: skip
    return False


def check_sequence(data: object, name: str) -> Any:
    """The first element at the bottom of nested sequences, None if there is none.  Raises for other objects."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")) or isinstance(data, dict):
        if hasattr(data, "__array__"):
            return np.empty(0)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    while (
        hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, (ndarray, np.generic, Tensor))
    ):
        if is_theirs(type(data)):
            raise TypeError(
                f"{name}(): argument 'data' must be a number, sequence, array or Tensor, not {kind_of(data)}"
            )
        if isinstance(data, (str, bytes)):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if isinstance(data, dict):
            raise RuntimeError("Could not infer dtype of dict")
        if len(data) == 0:
            return None
        data = data[0]
    if data is None or not isinstance(data, (int, float, complex, ndarray, np.generic, Tensor)):
        if not hasattr(data, "__float__") and not hasattr(data, "__array__"):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    return data


def slow_nested(data: Any, name: str) -> Array:
    """An array of nested sequences, element by element, with errors that say what is wrong."""
    shape: list[int] = []
    level = data
    while is_sequence(level):
        shape.append(len(level))
        if not len(level):
            break
        level = level[0]
    flat: list[Any] = []
    collect(data, tuple(shape), 0, flat)
    return np.array(flat).reshape(shape)


def is_sequence(x: Any) -> bool:
    """Whether `x` has a length and elements."""
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and not isinstance(x, (Tensor, np.generic, str, bytes)) \
        and not (isinstance(x, ndarray) and x.ndim == 0)  # fmt: skip


def collect(data: Any, shape: tuple[int, ...], depth: int, flat: list[Any]) -> None:
    """Append the elements to `flat`.  Raises ValueError or TypeError where the nesting is uneven."""
    if depth == len(shape):
        flat.append(element(data))
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for each in data:
        collect(each, shape, depth + 1, flat)


def element(x: object) -> Any:
    """An element as a number."""
    if isinstance(x, Tensor):
        if x._edge is not None:
            caller.warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. "
                          "Consider using tensor.detach() first.")  # fmt: skip
        if x._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return x._array.reshape(())[()]
    if isinstance(x, int) and not -(1 << 63) <= x < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if isinstance(x, (str, bytes, list, tuple)):
        raise TypeError(f"'{type(x).__name__}' object cannot be interpreted as an integer")
    if x is None:
        raise RuntimeError("Could not infer dtype of NoneType")
    return x


def warn_of_arrays() -> None:
    """Warn of a list of NumPy arrays."""
    caller.warn("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                  "list to a single numpy.ndarray with numpy.array() before converting to a tensor.")  # fmt: skip


def warn_of_copies(data: object) -> None:
    """Warn where a tensor is made of a tensor, whose history gets lost."""
    if isinstance(data, Tensor):
        caller.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).")  # fmt: skip
