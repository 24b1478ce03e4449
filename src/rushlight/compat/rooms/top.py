"""Names at the top of torch that checks and tracing need, for sizes that are plain numbers here."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from rushlight.basics.naming import called
from rushlight.dispatch.formats import contiguous_format as legacy_contiguous_format
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor

__all__ = ["legacy_contiguous_format", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt",
           "sym_sum"]  # fmt: skip


def _raise(error: type[Exception], condition: object, message: Callable[..., Any] | None) -> None:
    """Raise where the condition does not hold.  message: a function without arguments, or None."""
    if not isinstance(condition, builtins.bool):
        raise TypeError(f"cond must be a bool, but got {type(condition)}")
    if condition:
        return
    if message is None:
        raise error("Expected cond to be True, but got False. (Could this error message be improved? If so, please report "
                    "an enhancement request.)")  # fmt: skip
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


def _checking(name: str, error: type[Exception], said: str = "") -> Callable[..., None]:
    def check(cond: object, message: Callable[[], str] | None = None) -> None:
        _raise(error, cond, message)

    return called(check, name, f"Raises {error.__name__}{said} unless the condition holds.", __name__)


_check = _checking("_check", RuntimeError, " with what `message()` says")
_check_index = _checking("_check_index", IndexError)
_check_value = _checking("_check_value", ValueError)
_check_type = _checking("_check_type", TypeError)
_check_not_implemented = _checking("_check_not_implemented", NotImplementedError)


def _check_with(error_type: type[Exception], cond: object, message: Callable[[], str] | None = None) -> None:
    """Raises an error of this class unless the condition holds."""
    _raise(error_type, cond, message)


def _check_is_size(i: Any, message: Callable[[], str] | None = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless a number may be a size."""
    _raise(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Raises an error of this class unless every element of a tensor of bools is true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _raise(error_type, builtins.bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Raises RuntimeError unless every element of a tensor of bools is true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raises RuntimeError for a tensor of one element that is zero."""
    if not builtins.bool(input):
        raise RuntimeError(assert_msg)


def _shape_as_tensor(input: Tensor) -> object:
    """The sizes as a tensor.  -> (ndim), int64"""
    return named.tensor(list(input.shape), dtype=named.tensor(0).dtype)


def sym_int(a: float) -> Any:
    """A number without its fraction."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: object) -> builtins.bool:
    """Whether a condition does not hold."""
    return not a


def sym_max(a: Any, b: float) -> float:
    """The larger of two numbers; a float where one of them is."""
    largest = builtins.max(a, b)
    return float(largest) if isinstance(a, float) or isinstance(b, float) else largest


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one of them is."""
    smallest = builtins.min(a, b)
    return float(smallest) if isinstance(a, float) or isinstance(b, float) else smallest


def sym_ite(b: object, t: object, f: object) -> Any:
    """`t` where the condition holds, else `f`."""
    return t if b else f


def sym_sum(*args: object) -> Any:
    """The sum of numbers, given one by one or in one sequence."""
    return sum(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else sum(args)


def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: builtins.bool = False) -> object:
    """Where the rows begin, given the row of each element in order.  (N) -> (size + 1)"""
    counts = named.bincount(input, minlength=size)
    ends = named.cat([named.zeros(1, dtype=counts.dtype), counts.cumsum(0)])
    return ends.int() if out_int32 else ends


def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: builtins.bool = False,
                                     transpose: builtins.bool = False) -> object:  # fmt: skip
    """The row and the column of each element, given where the rows begin.  (rows + 1), (N) -> (2, N)"""
    rows = named.repeat_interleave(named.arange(len(crow_indices) - 1), crow_indices.diff().long())
    pair = [col_indices.long(), rows] if transpose else [rows, col_indices.long()]
    stacked = named.cat([p[None] for p in pair])
    return stacked.int() if out_int32 else stacked
