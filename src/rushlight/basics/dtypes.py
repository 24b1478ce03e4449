"""Data types, their promotion, and the default floating-point type."""

from __future__ import annotations

from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from rushlight.basics import caller, eights
from rushlight.basics.dtype_words import older
from rushlight.basics.foreign import kind_of

if not hasattr(ml_dtypes, "complex32"):
    raise ImportError(
        f"rushlight needs ml_dtypes 0.6 or newer, and {ml_dtypes.__version__} is installed: pip install --upgrade ml_dtypes"
    )

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
_py_float, _py_int, _py_bool, _py_type = float, int, bool, type  # their names are dtypes below


class dtype:
    """The type of a tensor's elements.

    >>> import rushlight as torch
    >>> torch.float32.is_floating_point, torch.float32.itemsize
    (True, 4)
    """

    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")

    category: Any
    is_complex: Any
    is_floating_point: Any
    is_signed: Any
    itemsize: Any
    name: str
    numpy: Any

    def __init__(self, name: str, numpy: Any, category: Any):
        self.name, self.numpy, self.category = name, np.dtype(numpy), category
        self.itemsize = self.numpy.itemsize
        self.is_floating_point, self.is_complex = category == FLOAT, category == COMPLEX
        self.is_signed = category != BOOL and not name.startswith("uint") and name != "float8_e8m0fnu"

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    @property
    def abbr(self) -> str:
        """The name in short: f32, bf16, i64, b8."""
        stem = self.name.rstrip("0123456789") if self.name[-1].isdigit() else self.name
        short = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c", "bool": "b8"}.get(stem, "")
        return short + self.name[len(stem) :] if short else self.name.replace("float", "f").replace("_", "")

    def to_real(self) -> dtype:
        """The dtype of this one's real part."""
        return {complex32: float16, complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts are of this one.  Raises RuntimeError for one of 8 bits."""
        if self in EIGHTS:
            refuse_promotion(self, complex64)
        if self.category < FLOAT:
            raise RuntimeError(f"Unknown Complex ScalarType for {older(self)}: no complex number has parts of {self}")
        return {float32: complex64, float64: complex128, float16: complex32, bfloat16: complex64}.get(self, self)


float16 = half = dtype("float16", np.float16, FLOAT)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT)
float32 = float = dtype("float32", np.float32, FLOAT)
float64 = double = dtype("float64", np.float64, FLOAT)
complex32 = chalf = dtype("complex32", ml_dtypes.complex32, COMPLEX)
complex64 = cfloat = dtype("complex64", np.complex64, COMPLEX)
complex128 = cdouble = dtype("complex128", np.complex128, COMPLEX)
uint8 = dtype("uint8", np.uint8, INTEGER)
int8 = dtype("int8", np.int8, INTEGER)
int16 = short = dtype("int16", np.int16, INTEGER)
int32 = int = dtype("int32", np.int32, INTEGER)
int64 = long = dtype("int64", np.int64, INTEGER)
uint16 = dtype("uint16", np.uint16, INTEGER)
uint32 = dtype("uint32", np.uint32, INTEGER)
uint64 = dtype("uint64", np.uint64, INTEGER)
bool = dtype("bool", np.bool_, BOOL)

ALL = (float16, bfloat16, float32, float64, complex32, complex64, complex128, uint8, int8, int16, int32, int64, uint16,
       uint32, uint64, bool)  # fmt: skip
ALIASES = {"half": float16, "float": float32, "double": float64, "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
           "short": int16, "int": int32, "long": int64}  # fmt: skip
WIDE = (uint16, uint32, uint64)  # unsigned integers that have no order among the other dtypes
HALVES = (float16.numpy, bfloat16.numpy)


class QuantizedDtype(dtype):
    """A dtype of quantized numbers or of few bits: to be compared and asked for its size, for tables by dtype; no tensor has it."""

    __slots__ = ()

    def __init__(self, name: str, itemsize: Any):
        self.name, self.category, self.itemsize = name, INTEGER, itemsize
        self.is_floating_point, self.is_complex = name.startswith("float"), False
        self.is_signed = name.startswith(("q", "int", "float"))

    @property
    def numpy(self) -> Any:
        """Refused: raises NotImplementedError."""
        none = "there are no quantized tensors" if "qu" in self.name or "qi" in self.name else "no tensor has it"
        raise NotImplementedError(
            f"torch.{self.name} is there by name alone: {none}; float16 and bfloat16 halve the bytes, and int8 quarters them"
        )


EIGHTS = tuple(dtype(name, getattr(ml_dtypes, name), FLOAT) for name in eights.NAMES)
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = EIGHTS  # moved, and seldom computed with
NAMED = (
    *EIGHTS,
    *(
        QuantizedDtype(name, {"qint32": 4, "bits16": 2}.get(name, 1))
        for name in (
            *("qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
            *(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
            "float4_e2m1fn_x2",
        )
    ),
)
COMPLEX_KINDS = "cW"  # of NumPy dtypes; complex32, which NumPy's functions do not take for complex, is of the second before ml_dtypes 0.7
_BY_NUM = {d.numpy.num: d for d in (*ALL, *EIGHTS)}
_BY_NUM[np.dtype(np.longlong).num] = int64
_BY_NUM[np.dtype(np.ulonglong).num] = uint64
_COMPLEX_HALF = complex32.numpy.num
_default = [float32]


def of(numpy_dtype: np.dtype[Any]) -> dtype:
    """The dtype of a NumPy dtype.  Raises TypeError for one that tensors do not have."""
    try:
        return _BY_NUM[numpy_dtype.num]
    except KeyError:
        names = ", ".join(d.name for d in ALL)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype.type.__module__}.{numpy_dtype.type.__name__}. The only supported types are: {names}."
        ) from None


def is_complex(numpy_dtype: Any) -> Any:
    """Whether a NumPy dtype is one of complex numbers."""
    return numpy_dtype.kind in COMPLEX_KINDS


def is_complex_half(numpy_dtype: Any) -> Any:
    """Whether a NumPy dtype is complex32."""
    return numpy_dtype.num == _COMPLEX_HALF


def warn_of_lost_parts(source: dtype, target: dtype) -> None:
    """Warn at the user's line where complex numbers become real ones, as a dtype or a destination asks for.  Bools lose none."""
    if source.is_complex and not target.is_complex and target is not bool:
        caller.warn("Casting complex values to real discards the imaginary part; `.real` says that it is meant")


def real_of(array: Any) -> Any:
    """The real part of an array, a view; real arrays themselves.  (*) -> (*)"""
    return array[..., None].view(float16.numpy)[..., 0] if is_complex_half(array.dtype) else array.real


def imag_of(array: Any) -> Any:
    """The imaginary part of a complex array, a view.  (*) -> (*)"""
    return array[..., None].view(float16.numpy)[..., 1] if is_complex_half(array.dtype) else array.imag


def get_default_dtype() -> dtype:
    """The dtype of new floating-point tensors: float32 unless set_default_dtype changed it."""
    return _default[0]


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of new floating-point tensors.  Raises TypeError unless `d` is a floating-point dtype of 16 bits or more."""
    if not isinstance(d, dtype) or not d.is_floating_point or d in EIGHTS:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _default[0] = d


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype to which both convert by PyTorch's rules (category first, then size).

    >>> import rushlight as torch
    >>> torch.promote_types(torch.int64, torch.float32)
    torch.float32
    """
    if type1 is type2 and isinstance(type1, dtype):
        return type1
    for i, given in enumerate((type1, type2), 1):
        if isinstance(given, _py_type) and given in PYTHON:
            return promote_types(PYTHON.get(type1, type1), PYTHON.get(type2, type2))
        if not isinstance(given, dtype):
            raise TypeError(f"promote_types(): argument 'type{i}' (position {i}) must be torch.dtype, not "
                            f"{kind_of(given)}")  # fmt: skip
    if type1 in EIGHTS or type2 in EIGHTS:
        refuse_promotion(type1, type2)
    if (type1 in WIDE and type2.category != FLOAT) or (type2 in WIDE and type1.category != FLOAT):
        refuse_promotion(type1, type2, "uint16, uint32, uint64 types")
    low, high = sorted((type1, type2), key=lambda d: d.category)
    if high.category == COMPLEX and low.category >= FLOAT:
        return promote_types(low.to_real(), high.to_real()).to_complex()
    if low.category != high.category:
        return high
    if {type1, type2} == {float16, bfloat16}:
        return float32
    return of(np.promote_types(type1.numpy, type2.numpy))


def refuse_promotion(type1: dtype, type2: dtype, kinds: str = "Float8 Types") -> NoReturn:
    """Raise RuntimeError for numbers of 8 bits, or unsigned ones of more, beside those of another dtype."""
    raise RuntimeError(
        f"Promotion for {kinds} is not supported, attempted to promote {older(type1)} and {older(type2)}: convert one "
        "of them, as with x.float()"
    )


def scalar_category(value: object) -> Any:
    """The category of a Python number."""
    if isinstance(value, _py_bool):
        return BOOL
    return INTEGER if isinstance(value, _py_int) else FLOAT if isinstance(value, _py_float) else COMPLEX


def default_of_category(category: Any) -> dtype:
    """The dtype that a Python number of this category has as a tensor."""
    return (bool, int64, _default[0], _default[0].to_complex())[category]


def result_dtype(operands: list[Any]) -> dtype:
    """The dtype of arithmetic between arrays and Python numbers.

    Dimensioned arrays decide; zero-dimensional ones and then Python numbers count only where their category is higher.
    """
    first = operands[0]
    if first.__class__ is np.ndarray and first.dtype.kind == "f" and _are_real(operands[1:]):
        return of(first.dtype)
    groups: list[Any] = [None, None, None]  # dimensioned, zero-dimensional, Python numbers
    for x in operands:
        if isinstance(x, np.ndarray):
            rank, d = (0 if x.ndim else 1), of(x.dtype)
        elif isinstance(x, np.generic):
            rank, d = 1, of(x.dtype)
        else:
            rank, d = 2, default_of_category(scalar_category(x))
        known = groups[rank]
        groups[rank] = d if known is None else promote_types(known, d)
    result: Any = groups[0]
    for d in groups[1:]:
        if d is not None and (result is None or d.category > result.category):
            result = d if result is None else _raised(result, d)
    if result is None:
        raise TypeError("no operand has a dtype")
    return result  # type: ignore[no-any-return]


def _are_real(operands: list[Any]) -> Any:
    """Whether all are Python numbers that raise no floating-point dtype."""
    for x in operands:
        if x.__class__ is not _py_float and x.__class__ is not _py_int:
            return False
    return True


def _raised(base: dtype, higher: dtype) -> dtype:
    """`base` raised to the category of `higher`, which has lower priority."""
    if higher.category == COMPLEX and base.category == FLOAT:
        return base.to_complex()
    return higher


def can_cast(from_: dtype, to: dtype) -> Any:
    """Whether arithmetic results of `from_` may be stored in `to`: never to a lower category."""
    return from_.category <= to.category or (from_.category == INTEGER and to.category == INTEGER)


# What Python's types stand for where a dtype is asked for.
PYTHON = {_py_float: float64, _py_int: int64, _py_bool: bool, complex: complex128}


def given_type(name: str, type: Any) -> dtype:
    """A dtype, also given as a type of Python's.  Raises TypeError for anything else."""
    found = PYTHON.get(type, type) if isinstance(type, _py_type) else type
    if not isinstance(found, dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {kind_of(type)}")
    return found


class finfo:
    """Numerical limits of a floating-point dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type: Any = None) -> None:
        d = get_default_dtype() if type is None else given_type("finfo", type).to_real()
        if not d.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle {d!r}")
        info: Any = ml_dtypes.finfo(d.numpy)  # type: ignore[no-untyped-call]
        self.dtype: str = d.name
        self.bits: Any = info.bits
        self.eps, self.max, self.min = (type_float(v) for v in (info.eps, info.max, info.min))
        self.tiny = self.smallest_normal = type_float(info.tiny)
        self.resolution = 1.0 if d in EIGHTS else 10.0**-info.precision

    def __eq__(self, other: object) -> Any:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> Any:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")  # fmt: skip


_STORED = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32, "quint4x2": np.uint8, "quint2x4": np.uint8}


class iinfo:
    """Numerical limits of an integer dtype: bits, max, min."""

    def __init__(self, type: dtype):
        type = given_type("iinfo", type)
        if type is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo: it has two values and no range")
        few = isinstance(type, QuantizedDtype) and type.name not in _STORED
        if type.category != INTEGER or few:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle {type!r}")
        # Of quantized numbers, the bits that each has: two or four of quint4x2 and quint2x4 lie in a byte.
        info = np.iinfo(_STORED[type.name] if isinstance(type, QuantizedDtype) else type.numpy)
        self.dtype, self.bits, self.max, self.min = type.name, info.bits, info.max, info.min

    def __eq__(self, other: object) -> Any:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> Any:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def type_float(value: Any) -> Any:
    """A Python float of a NumPy scalar."""
    return _py_float(value)
