"""Dtypes of results: questions about dtypes, and what becomes of those of several operands."""

from __future__ import annotations

import enum
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype, promote_types
from rushlight.tensor import Tensor

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "corresponding_complex_dtype", "corresponding_real_dtype",
           "dtype_to_type", "elementwise_dtypes", "get_computation_dtype", "is_boolean_dtype", "is_complex_dtype",
           "is_float_dtype", "is_integer_dtype", "type_to_dtype"]  # fmt: skip

_COMPLEX = {dtypes.float16: dtypes.complex32, dtypes.bfloat16: dtypes.complex64, dtypes.float32: dtypes.complex64,
            dtypes.float64: dtypes.complex128}  # fmt: skip
_REAL = {
    dtypes.complex32: dtypes.float16,
    dtypes.complex64: dtypes.float32,
    dtypes.complex128: dtypes.float64,
}
_WIDER = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32, dtypes.complex32: dtypes.complex64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """What becomes of the dtypes of operands, element by element."""

    DEFAULT = 0
    NO_OPMATH = 1
    INT_TO_FLOAT = 2
    ALWAYS_BOOL = 3
    COMPLEX_TO_FLOAT = 4
    BOOL_TO_LONG = 5


_KIND = ELEMENTWISE_TYPE_PROMOTION_KIND


def is_boolean_dtype(dtype: dtype) -> bool:
    """Whether it is bool."""
    return dtype is dtypes.bool


def is_float_dtype(dtype: dtype) -> bool:
    """Whether it is of real numbers with a point."""
    return bool(dtype.is_floating_point)


def is_complex_dtype(dtype: dtype) -> bool:
    """Whether it is of complex numbers."""
    return bool(dtype.is_complex)


def is_integer_dtype(dtype: dtype) -> bool:
    """Whether it is of integers."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


def corresponding_complex_dtype(dtype: dtype) -> dtype:
    """The complex dtype of a floating-point one."""
    return _COMPLEX[dtype]


def corresponding_real_dtype(dtype: dtype) -> dtype:
    """The dtype of the parts of a complex one."""
    return _REAL[dtype]


def get_computation_dtype(dtype: dtype) -> dtype:
    """The dtype in which values of another are computed: float32 of 16 bits."""
    return _WIDER.get(dtype, dtype)


def dtype_to_type(dtype: dtype) -> type:
    """Python's class of numbers of a dtype.  Raises ValueError for what is no dtype."""
    if not isinstance(dtype, dtypes.dtype):
        raise ValueError(f"Invalid dtype! {dtype}")
    return (bool, int, float, complex)[_rank(dtype)]


def type_to_dtype(typ: type) -> dtype:
    """The dtype of numbers of a class of Python's.  Raises ValueError for another class."""
    usual = dtypes.get_default_dtype()
    known = {bool: dtypes.bool, int: dtypes.int64, float: usual, complex: _COMPLEX[usual]}
    if typ not in known:
        raise ValueError(f"Invalid type {typ}!")
    return known[typ]


def _rank(dtype: dtype) -> int:
    """0 of bool, 1 of integers, 2 of floating-point, 3 of complex numbers."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if is_boolean_dtype(dtype) else 1


def _highest(args: tuple[Any, ...]) -> dtype:
    """The dtype of a result: of tensors with dimensions, raised by those without and by numbers where these are of a higher kind."""
    given: list[list[dtype]] = [[], [], []]
    for x in args:
        if isinstance(x, Tensor):
            given[0 if x.dim() else 1].append(x.dtype)
        elif x is not None:
            given[2].append(type_to_dtype(x if isinstance(x, type) else type(x)))
    found: Any = None
    for kinds in given:
        if kinds:
            lower = kinds[0]
            for kind in kinds[1:]:
                lower = promote_types(lower, kind)
            found = lower if found is None else _raised(found, lower)
    return found  # type: ignore[no-any-return]


def _raised(higher: dtype, lower: dtype) -> dtype:
    """The dtype of operands beside others that count less."""
    if _rank(lower) <= _rank(higher):
        return higher
    if _rank(higher) == 2:
        return _COMPLEX[higher]
    return promote_types(higher, lower)


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[dtype, dtype]:
    """The dtype in which an operation on tensors and numbers is computed, and that of its result."""
    found = _highest(_args)
    if type_promotion_kind is _KIND.NO_OPMATH:
        return found, found
    if type_promotion_kind is _KIND.ALWAYS_BOOL:
        return get_computation_dtype(found), dtypes.bool
    if type_promotion_kind is _KIND.INT_TO_FLOAT and _rank(found) < 2:
        found = dtypes.get_default_dtype()
    if type_promotion_kind is _KIND.BOOL_TO_LONG and is_boolean_dtype(found):
        return dtypes.int64, dtypes.int64
    if type_promotion_kind is _KIND.COMPLEX_TO_FLOAT and found.is_complex:
        return get_computation_dtype(found), corresponding_real_dtype(found)
    return get_computation_dtype(found), found
