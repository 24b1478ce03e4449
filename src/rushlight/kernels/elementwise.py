"""Activations and their gradients, elementwise.

Every function takes arrays of one shape, any strides, float16 to float64, and returns a new array of that
shape and dtype, or writes into ``out`` (same shape and dtype; it may be one of the inputs) and returns that.
Other dtypes go the way NumPy takes them.
"""

# mypy: disable-error-code="no-any-return"
# (arithmetic on NDArray[Any] is Any to NumPy's stubs)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ml_dtypes import bfloat16
from numpy import asarray, dtype, empty_like, may_share_memory, ndarray, uint16

from rushlight.kernels.dispatch import (
    DENSE,
    Array,
    alike,
    dense,
    gapless,
    in_float32_blocks,
    is_half,
    native,
    put,
    through_float32,
)
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import MAPS
from rushlight.kernels.reference import elementwise as reference

BFLOAT16 = dtype(bfloat16)

Kernel = Callable[..., Array]  # of kernels.reference

# NumPy vectorises these itself: below so many elements its call is the cheaper one.
_SMALL_EXP = 4096
_SMALL_TANH = 65536  # its tanh is faster than ours on one thread


def map_one(kernel: Kernel, x: Array, out: Array | None, *numbers: object) -> Array:
    """The native twin of `kernel`, by its name, of each element.  (*) -> (*)"""
    table = native(x.dtype)
    if table is None:
        return put(_plain(kernel, x.dtype, x, *numbers), out)
    if not gapless(x):
        x = x.copy(order="C")
    target = empty_like(x) if out is None else _target(out, x)
    getattr(table, kernel.__name__)(x, target, x.size, *numbers)
    return put(target, out)


def _target(out: Array, *inputs: Array) -> Array:
    """`out` where a kernel may write at once, element by element as it reads; else an array to be copied into it."""
    first = inputs[0]
    if out.strides != first.strides or out.dtype != first.dtype or out.shape != first.shape or not out.flags.behaved:
        return empty_like(first)
    return out if all(out is x or _apart(out, x) for x in inputs) else empty_like(first)


def _apart(out: Array, x: Array) -> bool:
    """Whether two arrays of one layout are the same memory or share none."""
    if not may_share_memory(out, x):
        return True
    return bool(out.__array_interface__["data"][0] == x.__array_interface__["data"][0] and out.strides == x.strides)


def map_pair(kernel: Kernel, x: Array, y: Array, out: Array | None, *numbers: object) -> Array:
    """The native twin of `kernel`, by its name, of each pair of elements.  (*), (*) -> (*)"""
    table = native(x.dtype)
    if table is None or y.dtype != x.dtype:
        return put(_plain(kernel, x.dtype, x, y, *numbers), out)
    if x.shape != y.shape or x.flags.num & y.flags.num & DENSE != DENSE:
        if out is None and x.shape == y.shape and gapless(y) and not gapless(x):  # no copy beside the result
            out = empty_like(y)
            out[...] = x
            x = out
        x, y = alike(x, y)
    target = empty_like(x) if out is None else _target(out, x, y)
    getattr(table, kernel.__name__)(x, y, target, x.size, *numbers)
    return put(target, out)


def _plain(kernel: Kernel, dtype: Any, *arguments: object) -> Array:
    arrays = [a for a in arguments if isinstance(a, ndarray)]
    found = _of_bfloat16(kernel, arrays, arguments[len(arrays) :]) if dtype == BFLOAT16 else None
    if found is not None:
        return found
    if is_half(dtype) and all(a.dtype == dtype for a in arrays):
        numbers, again = arguments[len(arrays) :], (map_one, map_pair)[len(arrays) - 1]
        found = in_float32_blocks(lambda *blocks: again(kernel, *blocks, None, *numbers), *arrays)
        if found is not None:
            return found
    return asarray(through_float32(kernel, dtype, *arguments) if is_half(dtype) else kernel(*arguments))


_MAPS = ("bf16", *MAPS)


def _maps() -> Any:
    """The native kernels of bfloat16 numbers; None where there are none."""
    tables = loader._tables
    return (loader.tables() if tables is None else tables).get(_MAPS)


def _of_bfloat16(kernel: Kernel, arrays: list[Array], numbers: tuple[object, ...]) -> Array | None:
    """The native twin of `kernel` that takes bfloat16 numbers; None where there is none."""
    first, run = arrays[0], getattr(_maps(), kernel.__name__, None)
    if run is None or any(a.dtype != BFLOAT16 or a.shape != first.shape for a in arrays):
        return None
    dense = [first if gapless(first) else first.copy(order="C")] if len(arrays) == 1 else alike(*arrays)
    out = empty_like(dense[0])
    run(*(a.view(uint16) for a in dense), out.view(uint16), out.size, *numbers)
    return out


def exp(x: Array, out: Array | None = None) -> Array:
    """e^x."""
    if x.size < _SMALL_EXP:
        return put(_plain(reference.exp, x.dtype, x), out)
    return map_one(reference.exp, x, out)


def log(x: Array, out: Array | None = None) -> Array:
    """Natural logarithm; NaN below 0, -inf at 0, without warnings."""
    return map_one(reference.log, x, out)


def tanh(x: Array, out: Array | None = None) -> Array:
    """Hyperbolic tangent."""
    if x.size < _SMALL_TANH:
        return put(_plain(reference.tanh, x.dtype, x), out)
    return map_one(reference.tanh, x, out)


def erf(x: Array, out: Array | None = None) -> Array:
    """Error function."""
    return map_one(reference.erf, x, out)


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """1 / (1 + e^-x), without overflow."""
    return map_one(reference.sigmoid, x, out)


def silu(x: Array, out: Array | None = None) -> Array:
    """x * sigmoid(x)."""
    return map_one(reference.silu, x, out)


def gelu(x: Array, approximate: str = "none", out: Array | None = None) -> Array:
    """x * Phi(x), Phi the normal distribution; ``approximate="tanh"`` for Hendrycks' formula."""
    return map_one(reference.gelu, x, out, _form(approximate))


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0, out: Array | None = None) -> Array:
    """log(1 + e^(beta x)) / beta; x itself where beta x > threshold."""
    return map_one(reference.softplus, x, out, beta, threshold)


def silu_backward(g: Array, x: Array, out: Array | None = None) -> Array:
    """g * silu'(x)."""
    return map_pair(reference.silu_backward, g, x, out)


def sigmoid_backward(g: Array, output: Array, out: Array | None = None) -> Array:
    """g * output * (1 - output), ``output = sigmoid(x)``."""
    return map_pair(reference.sigmoid_backward, g, output, out)


def tanh_backward(g: Array, output: Array, out: Array | None = None) -> Array:
    """g * (1 - output^2), ``output = tanh(x)``."""
    return map_pair(reference.tanh_backward, g, output, out)


def gelu_backward(g: Array, x: Array, approximate: str = "none", out: Array | None = None) -> Array:
    """g * gelu'(x)."""
    return map_pair(reference.gelu_backward, g, x, out, _form(approximate))


def softplus_backward(
    g: Array, x: Array, beta: float = 1.0, threshold: float = 20.0, out: Array | None = None
) -> Array:
    """g * sigmoid(beta x); g itself where beta x > threshold."""
    return map_pair(reference.softplus_backward, g, x, out, beta, threshold)


def relu_backward(g: Array, output: Array, out: Array | None = None) -> Array:
    """g where ``output`` (the result or the input of relu) is not <= 0, else 0; a bool mask says where itself."""
    if output.dtype != bool:
        return map_pair(reference.relu_backward, g, output, out)
    table = native(g.dtype)
    fits = dense(g) and output.flags.c_contiguous and g.shape == output.shape
    if g.dtype == BFLOAT16 and fits and _maps() is not None:
        made = empty_like(g)
        _maps().relu_backward_mask(g.view(uint16), output, made.view(uint16), g.size)
        return put(made, out)
    if table is None or not fits:
        return put(_plain(reference.relu_backward_mask, g.dtype, g, output), out)
    target = empty_like(g) if out is None else _target(out, g)
    table.relu_backward_mask(g, output, target, g.size)
    return put(target, out)


def _form(approximate: str) -> int:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return int(approximate == "tanh")
