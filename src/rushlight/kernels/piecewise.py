"""Functions made of straight pieces and parabolas, and their gradients, elementwise; their native twins are in piecewise.cpp.

`choose` takes one of two elements as a mask says, `triangle` one side of a diagonal; their twins are in choose.cpp.

Arrays and results as in `rushlight.kernels.maps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import (
    SMALL,
    Array,
    bits,
    dense,
    gapless,
    in_float32_blocks,
    is_half,
    native,
    rounded,
    up,
)
from rushlight.kernels.maps import PAIRED, each, like, maps_of
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import MAPS, exports, exports_of_bytes
from rushlight.kernels.pointwise.orders import by_rows

__all__ = [
    "add_product",
    "add_quotient",
    "between_backward",
    "choose",
    "clamp",
    "clear_triangle",
    "angle_of_real",
    "finite",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardswish_backward",
    "huber",
    "huber_slope",
    "leaky_relu",
    "leaky_relu_backward",
    "lerp",
    "lerp_each",
    "not_0_backward",
    "scaled_sum",
    "sign",
    "softshrink",
    "softsign",
    "triangle",
]


@each()
def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN."""
    out = np.asarray(np.greater(x, 0)).astype(x.dtype)
    return np.subtract(out, np.less(x, 0), out=out)


@each()
def clamp(x: Array, low: float, high: float) -> Array:
    """x limited to [low, high], of which ``high`` wins where they cross; NaN stays."""
    return np.asarray(np.minimum(np.maximum(x, low), high))


@each()
def between_backward(g: Array, x: Array, low: float, high: float) -> Array:
    """g where x is over ``low`` and under ``high``, or NaN; else 0."""
    return np.where((x <= low) | (x >= high), np.zeros((), g.dtype), g)


@each()
def leaky_relu(x: Array, slope: float) -> Array:
    """x where over 0, else ``slope`` * x."""
    return np.where(x > 0, x, x * slope)


@each()
def leaky_relu_backward(g: Array, x: Array, slope: float) -> Array:
    """g where x is over 0, else ``slope`` * g."""
    return np.where(x > 0, g, g * slope)


@each()
def hardswish(x: Array) -> Array:
    """x * min(max(x + 3, 0), 6) / 6."""
    return np.clip(x + 3, 0, 6) * x * x.dtype.type(1 / 6)


@each()
def hardswish_backward(g: Array, x: Array) -> Array:
    """g * hardswish'(x)."""
    within = g * (x * x.dtype.type(1 / 3) + x.dtype.type(0.5))
    return np.where(x <= -3, g.dtype.type(0), np.where(x < 3, within, g))


@each()
def huber(x: Array, target: Array, delta: float, scale: float) -> Array:
    """scale * (d^2 / 2 where |d| < delta, else delta * (|d| - delta / 2)) of d = x - target."""
    d = np.asarray(np.absolute(x - target))
    near = np.asarray(np.minimum(d, delta))
    d -= near * d.dtype.type(0.5)
    near *= scale
    return np.multiply(d, near, out=d)


@each()
def huber_slope(x: Array, target: Array, delta: float, scale: float) -> Array:
    """scale * (x - target), limited to [-delta, delta] before."""
    d = np.asarray(x - target)
    np.clip(d, -delta, delta, out=d)
    return np.multiply(d, d.dtype.type(scale), out=d)


@each()
def lerp(x: Array, end: Array, weight: float) -> Array:
    """x + weight * (end - x), exact at both ends."""
    step, part = np.asarray(end - x), x.dtype.type(weight)
    if abs(part) < 0.5:
        step *= part
        return np.add(x, step, out=step)
    step *= 1 - part
    return np.subtract(end, step, out=step)


@each()
def scaled_sum(x: Array, other: Array, factor: float) -> Array:
    """x + factor * other."""
    out = np.asarray(other * other.dtype.type(factor))
    return np.add(x, out, out=out)


@each()
def hardshrink(x: Array, limit: float) -> Array:
    """0 where x is in [-limit, limit], else x."""
    inside = np.asarray(x >= -limit)
    inside &= x <= limit
    return np.where(inside, x.dtype.type(0), x)


@each()
def hardsigmoid(x: Array) -> Array:
    """min(max(x + 3, 0), 6) / 6."""
    out = np.asarray(x + 3)
    return np.divide(np.clip(out, 0, 6, out=out), 6, out=out)


@each()
def softshrink(x: Array, limit: float) -> Array:
    """x moved towards 0 by ``limit``, 0 in between."""
    out = np.asarray(np.clip(x, -limit, limit))
    return np.subtract(x, out, out=out)


@each()
def softsign(x: Array) -> Array:
    """x / (1 + |x|)."""
    out = np.asarray(np.absolute(x))
    out += 1
    return np.divide(x, out, out=out)


@each()
def not_0_backward(g: Array, output: Array) -> Array:
    """g where ``output`` is not 0, else 0."""
    return np.where(output == 0, g.dtype.type(0), g)


@each()
def finite(x: Array, nan: float, above: float, below: float) -> Array:
    """x with numbers in the place of NaN and of both infinities."""
    out = np.array(x, order="K")
    infinite = np.isinf(x)
    if infinite.any():
        up = np.greater(x, 0)
        np.copyto(out, x.dtype.type(above), where=infinite & up)
        np.copyto(out, x.dtype.type(below), where=infinite & ~up)
    np.copyto(out, x.dtype.type(nan), where=np.isnan(x))
    return out


@each()
def angle_of_real(x: Array) -> Array:
    """pi where x is under 0, else 0; NaN of NaN."""
    out = np.asarray(np.where(np.less(x, 0), x.dtype.type(math.pi), x.dtype.type(0)))
    np.copyto(out, x, where=np.isnan(x))
    return out


_OF_THREE = {  # piecewise.cpp: input, end, weights, result, elements; input, both factors or parts of a quotient, result, elements, a factor
    "lerp_each": "aaaan",
    "add_product": "aaaand",
    "add_quotient": "aaaand",
}
exports_of_bytes(
    # choose.cpp: a mask, elements where it is set and where it is not, result; how often the mask repeats, its size,
    # bytes of an element, how many there are of both
    choose="aaaa" + "nnnnn",
    # elements of matrices, result; how many matrices, their rows and columns, bytes of an element, a diagonal and
    # whether what lies above it is kept
    triangle="aa" + "nnnnni",
)

exports(**_OF_THREE)
MAPS.update(_OF_THREE)


def _of_three(kernel: str, x: Array, y: Array, z: Array, *numbers: float) -> Array | None:
    """The native twin of three large arrays that lie alike, of 16 bits in float32 and rounded once; else None."""
    if x.size <= SMALL:
        return None
    half = is_half(x.dtype)
    table = maps_of(x.dtype) if half else native(x.dtype) if x.size >= PAIRED else None
    if table is None or not (gapless(x) and like(x, y) and like(x, z)):
        return None
    out = np.empty_like(x)
    getattr(table, kernel)(bits(x), bits(y), bits(z), bits(out), x.size, *numbers)
    return out


def lerp_each(x: Array, end: Array, weight: Array) -> Array:
    """As `lerp`, of a weight for each element, broadcast.  (*), (*), (*) -> (*)"""
    made = _of_three("lerp_each", x, end, weight)
    if made is not None:
        return made
    if is_half(x.dtype):
        return _wide(lerp_each, x, end, weight)
    step: Any = np.asarray(end - x)
    return np.where(np.abs(weight) < 0.5, x + step * weight, end - step * (1 - weight))


def add_product(x: Array, a: Array, b: Array, factor: Any = None) -> Array:
    """x + a * b * factor, broadcast, each step rounded by itself; of 16 bits the sum alone.  (*), (*), (*) -> (*)"""
    return _added("add_product", np.multiply, x, a, b, factor)


def add_quotient(x: Array, a: Array, b: Array, factor: Any = None) -> Array:
    """x + a / b * factor, as `add_product`.  (*), (*), (*) -> (*)"""
    return _added("add_quotient", np.true_divide, x, a, b, factor)


def _added(kernel: str, join: np.ufunc, x: Array, a: Array, b: Array, factor: Any) -> Array:
    real = x.size > SMALL and x.dtype.kind in "fV"
    made = _of_three(kernel, x, a, b, 1.0 if factor is None else float(factor)) if real else None
    if made is not None:
        return made
    if is_half(x.dtype):
        return _wide(lambda *some: _added(kernel, join, some[0], some[1], some[2], factor), x, a, b)
    made = np.asarray(join(a, b)).astype(a.dtype, copy=False)
    if factor is not None:
        np.multiply(made, factor, out=made)
    return np.add(x, made, out=made) if x.shape == made.shape else np.add(x, made)


def _wide(kernel: Callable[..., Array], *arrays: Array) -> Array:
    """A kernel of 16-bit arrays: in float32, rounded once."""
    found = in_float32_blocks(kernel, *arrays)
    return rounded(np.asarray(kernel(*up(*arrays))), arrays[0].dtype) if found is None else found


# By a mask ---------------------------------------------------------------------------------------------

CHOSEN = 2048  # elements below which NumPy's call is the cheaper one
WIDTHS = (1, 2, 4, 8, 16)  # bytes of an element


def choose(mask: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """`a` where `mask` is true, else `b`, into `out` if that is given, which may be one of them.  (*) bool, (*), (*) -> (*)

    a, b: arrays of one dtype, which broadcast with the mask. Nothing is computed with elements, so that a NaN keeps its bits.
    """
    if out is None and b.size < CHOSEN and mask.shape == b.shape and (a.size == 1 or a.shape == b.shape):
        return np.where(mask, a, b)
    shape = np.broadcast_shapes(mask.shape, a.shape, b.shape) if out is None else out.shape
    size = math.prod(shape)
    given = None
    if size >= CHOSEN and a.dtype == b.dtype and a.itemsize in WIDTHS and (out is None or _fits(out, a)):
        given = _given(mask, a, b, shape)
    kernels = None if given is None else loader.of_bytes()
    if kernels is None or given is None:
        made = by_rows(choose, (mask, a, b))
        made = np.where(mask, a, b) if made is None else made
        if out is None:
            return made
        out[...] = made
        return out
    flat, x, y = given
    if out is None:
        out = np.empty(shape, a.dtype)
    kernels.choose(flat, _bytes(x), _bytes(y), _bytes(out), size // flat.size, flat.size, a.itemsize, x.size, y.size)
    return out


def triangle(x: Array, diagonal: int, upper: bool) -> Array:
    """Matrices with zeros above a diagonal, or below one where `upper`.  (*, M, N) -> (*, M, N)"""
    rows, columns = x.shape[-2:]
    kernels = loader.of_bytes() if x.size and x.itemsize in WIDTHS and dense(x) else None
    if kernels is not None:
        out, cut = np.empty(x.shape, x.dtype), min(max(diagonal, -rows), columns)
        kernels.triangle(_bytes(x), _bytes(out), x.size // (rows * columns), rows, columns, x.itemsize, cut, upper)
        return out
    out = np.array(x, order="C")
    clear_triangle(out, diagonal, upper)
    return out


def clear_triangle(out: Array, diagonal: int, upper: bool) -> None:
    """Zeros above a diagonal, or below one where `upper`, in place, row by row: no mask of the matrix's size.  (*, M, N)"""
    rows, columns = out.shape[-2:]
    for i in range(rows):
        cut = min(max(i + diagonal + (not upper), 0), columns)
        if upper:
            out[..., i, :cut] = 0
        else:
            out[..., i, cut:] = 0


def _fits(out: Array, like: Array) -> bool:
    return out.flags.carray and out.dtype == like.dtype


def _given(mask: Array, a: Array, b: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Array] | None:
    """The mask as it repeats, and elements for all places or one for all; None where some lie in no such way."""
    # Of one number everywhere, as in the gradient of a sum, that number.
    a, b = (x if any(x.strides) else np.asarray(x[(0,) * x.ndim]) for x in (a, b))
    for x in (a, b):
        if not x.flags.aligned or (x.size != 1 and (x.shape != shape or not x.flags.c_contiguous)):
            return None
    lead = next((i for i, n in enumerate(mask.shape) if n != 1), mask.ndim)
    whole = mask.shape[lead:]
    if whole != shape[len(shape) - len(whole) :] or not mask.flags.c_contiguous or not whole:
        mask = np.broadcast_to(mask, shape)
    return np.ascontiguousarray(mask).reshape(-1).view(np.uint8), a, b


def _bytes(x: Array) -> Array:
    return x.reshape(-1).view(np.uint8)
