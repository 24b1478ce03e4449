"""What PyTorch's messages call dtypes: by the names of its older tensor types (Float), and by those of C++ (float)."""

from __future__ import annotations

from typing import Any

__all__ = ["as_number", "in_c", "older"]

# By the dtype's own name; others are called UInt16, ...
OLDER = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char",
         "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex32": "ComplexHalf",
         "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip
IN_C = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "uint8": "unsigned char",
        "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int", "bool": "bool",
        "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
        "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int"}  # fmt: skip


def older(dtype: Any) -> str:
    """Float, Double, Long, ...  dtype: one of tensors, or of NumPy."""
    name = str(dtype.name)
    return OLDER.get(name) or (name.capitalize() if name.startswith("float8") else name.replace("uint", "UInt"))


def in_c(dtype: Any) -> str:
    """float, double, long int, ...  dtype: one of tensors, or of NumPy."""
    name = str(dtype.name)
    return f"c10::{name.capitalize()}" if name.startswith("float8") else IN_C.get(name, name)


def as_number(dtype: Any) -> str:
    """What a number is converted to: float, double, and others by their own names."""
    name = str(dtype.name)
    return {"float32": "float", "float64": "double"}.get(name, name)
