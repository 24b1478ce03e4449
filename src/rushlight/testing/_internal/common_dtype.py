"""Groups of dtypes, by the names that PyTorch's tests have for them."""

from __future__ import annotations

from typing import Any

from rushlight.basics import dtypes as d

_FLOATING = (d.float32, d.float64)
_INTEGRAL = (d.uint8, d.int8, d.int16, d.int32, d.int64)
_COMPLEX = (d.complex64, d.complex128)
float_to_corresponding_complex_type_map = {d.float32: d.complex64, d.float64: d.complex128}
Kinds = tuple[Any, ...]


def empty_types() -> Kinds:
    """None."""
    return ()


def floating_types() -> Kinds:
    """float32 and float64."""
    return _FLOATING


def floating_types_and_half() -> Kinds:
    """float32, float64 and float16."""
    return (*_FLOATING, d.float16)


def floating_types_and(*more: object) -> Kinds:
    """float32, float64 and those given."""
    return (*_FLOATING, *more)


def floating_and_complex_types() -> Kinds:
    """Floating-point and complex dtypes, without those of 16 bits."""
    return (*_FLOATING, *_COMPLEX)


def floating_and_complex_types_and(*more: object) -> Kinds:
    """Floating-point and complex dtypes, and those given."""
    return (*_FLOATING, *_COMPLEX, *more)


def double_types() -> Kinds:
    """float64 and complex128."""
    return (d.float64, d.complex128)


def integral_types() -> Kinds:
    """Integers."""
    return _INTEGRAL


def integral_types_and(*more: object) -> Kinds:
    """Integers and those given."""
    return (*_INTEGRAL, *more)


def complex_types() -> Kinds:
    """complex64 and complex128."""
    return _COMPLEX


def complex_types_and(*more: object) -> Kinds:
    """Complex dtypes and those given."""
    return (*_COMPLEX, *more)


def all_types() -> Kinds:
    """float32, float64 and integers."""
    return (*_FLOATING, *_INTEGRAL)


def all_types_and(*more: object) -> Kinds:
    """float32, float64, integers and those given."""
    return (*all_types(), *more)


def all_types_and_half() -> Kinds:
    """float32, float64, integers and float16."""
    return (*all_types(), d.float16)


def all_types_and_complex() -> Kinds:
    """float32, float64, integers and complex dtypes."""
    return (*all_types(), *_COMPLEX)


def all_types_and_complex_and(*more: object) -> Kinds:
    """float32, float64, integers, complex dtypes and those given."""
    return (*all_types_and_complex(), *more)


def custom_types(*given: object) -> Kinds:
    """Those given."""
    return given


def get_all_dtypes(
    include_half: bool = True, include_bfloat16: bool = True, include_bool: bool = True, include_complex: bool = True, **_: object
) -> list[Any]:  # fmt: skip
    """All dtypes but for those left out."""
    found = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    return found + ([d.bool] if include_bool else []) + (get_all_complex_dtypes() if include_complex else [])


def get_all_math_dtypes(device: str) -> list[Any]:
    """All dtypes that numbers are computed with on a device."""
    return [*_INTEGRAL, *get_all_fp_dtypes(False, False), *_COMPLEX]


def get_all_complex_dtypes(include_complex32: bool = False) -> list[Any]:
    """Complex dtypes."""
    return list(_COMPLEX)


def get_all_int_dtypes() -> list[Any]:
    """Integers."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[Any]:
    """Floating-point dtypes."""
    return [*_FLOATING, *([d.float16] if include_half else []), *([d.bfloat16] if include_bfloat16 else [])]
