"""``torch.ao.quantization.utils``: ranges of few bits, and what is asked of schemes and of the limits that were seen."""

from __future__ import annotations

from rushlight.basics import caller, dtypes, schemes
from rushlight.basics.dtypes import dtype
from rushlight.basics.schemes import qscheme
from rushlight.tensor import Tensor

__all__ = ["calculate_qmin_qmax", "check_min_max_valid", "is_per_channel", "is_per_tensor", "validate_qmin_qmax"]

# By dtype: the steps that it has, and those where the range is to be halved.
STEPS = {
    "qint8": ((-128, 127), (-64, 63)), "int8": ((-128, 127), (-64, 63)), "quint8": ((0, 255), (0, 127)),
    "uint8": ((0, 255), (0, 127)), "qint32": ((-(2**31), 2**31 - 1),) * 2, "int32": ((-(2**31), 2**31 - 1),) * 2,
    "int16": ((-(2**15), 2**15 - 1),) * 2, "uint16": ((0, 2**16 - 1),) * 2,
}  # fmt: skip


def is_per_tensor(qscheme: qscheme) -> bool:
    """Whether there is one scale for all elements."""
    return qscheme in schemes.PER_TENSOR


def is_per_channel(qscheme: qscheme) -> bool:
    """Whether there is a scale for each channel."""
    return qscheme in schemes.PER_CHANNEL


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Raise AssertionError for a range without zero, or without steps."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(f"a range that is given must include 0, got {quant_min} to {quant_max}")
    if quant_min >= quant_max:
        raise AssertionError(f"a range that is given must have two steps or more, got {quant_min} to {quant_max}")


def calculate_qmin_qmax(
    quant_min: int | None, quant_max: int | None, has_customized_qrange: bool, dtype: dtype, reduce_range: bool
) -> tuple[int, int]:
    """The first and the last step: those given, or those of the dtype; about half as many with `reduce_range`.

    Raises AssertionError where more steps are given than the dtype has.
    """
    if quant_min is None or quant_max is None:
        return STEPS.get(dtype.name, ((0, 15),) * 2)[bool(reduce_range)]
    bits = {"qint8": 8, "int8": 8, "qint32": 32, "int32": 32}.get(dtype.name)
    if bits and not 0 < quant_max - quant_min + 1 <= 1 << bits:
        raise AssertionError(f"a range of {dtype} has {1 << bits} steps at most, got {quant_min} to {quant_max}")
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether something was seen; if not, that is said.  Raises AssertionError for a minimum above its maximum."""
    unseen = min_val.numel() == 0 or max_val.numel() == 0
    if not unseen and (min_val.dim() == 0 or max_val.dim() == 0):
        unseen = bool(min_val == float("inf") and max_val == float("-inf"))
    if unseen:
        caller.warn("calculate_qparams: nothing was seen yet, so the scale is 1 and the zero point 0")
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"limits: expected a minimum under the maximum, got {min_val} and {max_val}")
    return True


ALLOWED = "qint8 quint8 quint4x2 qint32 int8 uint8 int16 int32 float8_e5m2 float8_e4m3fn uint16".split()
EPS = dtypes.finfo(dtypes.float32).eps
