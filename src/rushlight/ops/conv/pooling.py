"""Pooling: maxima with their window elements, sums, adaptive and fractional windows, and unpooling.

Legend: N images, C channels, S input sizes, L output sizes, K kernel sizes. A geometry is (K, stride, padding, dilation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.naming import called
from rushlight.dispatch import call, families, randomness, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, listed
from rushlight.dispatch.formats import (
    channels_last,
    channels_last_3d,
    kept_made,
    kept_order,
    lies_channels_last,
    turning,
)
from rushlight.dispatch.keeping.shown import GEOMETRY
from rushlight.dispatch.meta import beside, nowhere, on_meta
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import function, op, with_out
from rushlight.dispatch.rules import laid_out
from rushlight.dispatch.variants import with_auxiliaries
from rushlight.generator import default_generator
from rushlight.kernels.reference.resample import Taps
from rushlight.levels.batch import everything
from rushlight.ops.conv.convolutions import batched, hashed, spread
from rushlight.ops.conv.resample import resample_op
from rushlight.ops.elementwise.convert import in_order_of
from rushlight.ops.shape.reshape import reshape_op
from rushlight.tensor import Tensor, wrap

# Operators -------------------------------------------------------------------------------------------


def lowest(dtype: np.dtype[Any]) -> float:
    """What every element exceeds or equals."""
    return -np.inf if dtype.kind not in "biu" else np.iinfo(dtype).min


@op(
    saved_as=GEOMETRY,
    aux=("which",),
    aten=("max_pool2d_with_indices", "max_pool3d_with_indices"),
    aten_call="pooled",
    aten_more=True,
    aten_gradient="pool",
    half=None,
    batch=families.images,
    passes=2.0,
)
def max_pool_op(input: Array, geometry: tuple[Any, ...], out_size: tuple[int, ...]) -> tuple[Array, ...]:
    """Maxima of windows.  input: (N, C, *S) -> (N, C, *L); keeps one byte for each output."""
    made, which = backend.max_pool(input, geometry, out_size, lowest(input.dtype))
    return kept_order(made, input), which


@max_pool_op.shape
def _(input: Array, geometry: tuple[tuple[int, ...], ...], out_size: tuple[int, ...]) -> list[shapes.Made]:
    shape = (*input.shape[: input.ndim - len(out_size)], *out_size)
    which = np.uint8 if math.prod(geometry[0]) <= 256 else np.int64
    return [kept_made(shapes.Made(shape, input.dtype), input), shapes.Made(shape, np.dtype(which))]


@max_pool_op.work
def _(input: Array, out_size: tuple[int, ...]) -> int:
    made = shapes.Made((*input.shape[: input.ndim - len(out_size)], *out_size), input.dtype)
    return max(laid_out(input), turning(made, input))


max_pool_op.grad("input")(lambda g, which, input_shape, geometry: pool_scatter_op(g, which, input_shape, geometry))


@op(half=None, shape=shapes.sized, batch=families.images)
def pool_scatter_op(input: Array, which: Array, size: tuple[int, ...], geometry: tuple[Any, ...]) -> Array:
    """input (N, C, *L) added at the window elements `which`: -> size (N, C, *S)"""
    return backend.pool_scatter(input, which, size, geometry)


@pool_scatter_op.work
def _(input: Array) -> int:
    return laid_out(input)


pool_scatter_op.grad("input")(lambda g, which, geometry: pool_gather_op(g, which, geometry))


@op(half=None, batch=families.images)
def pool_gather_op(input: Array, which: Array, geometry: tuple[Any, ...]) -> Array:
    """The window elements `which` of input (N, C, *S): -> (N, C, *L)"""
    return backend.pool_gather(input, which, geometry)


@pool_gather_op.shape
def _(input: Array, which: Array) -> list[shapes.Made]:
    return [shapes.Made(which.shape, input.dtype)]


pool_gather_op.grad("input")(lambda g, which, input_shape, geometry: pool_scatter_op(g, which, input_shape, geometry))


@op(half=None, shown="window_sum", linear=True, batch=families.images)
def pool_sum_op(input: Array, geometry: tuple[Any, ...], out_size: tuple[int, ...], by: int | str = 1) -> Array:
    """Sums over windows, divided by a number or how many elements each has: "all", or those "inside".  input: (N, C, *S) -> (N, C, *L)

    Of 16 bits both are done in float32: the sum of four float16 numbers of 30,000 is none.
    """
    made = backend.window_sum(input, geometry, out_size, divisors(by, input.shape[2:], geometry, out_size))
    return kept_order(made, input) if made.ndim == 4 else made  # volumes are not


@pool_sum_op.shape
def _(input: Array, out_size: tuple[int, ...]) -> list[shapes.Made]:
    made = shapes.Made((*input.shape[: input.ndim - len(out_size)], *out_size), input.dtype)
    return [kept_made(made, input) if len(made.shape) == 4 else made]


@pool_sum_op.work
def _(input: Array, out_size: tuple[int, ...]) -> int:
    made = shapes.Made((*input.shape[: input.ndim - len(out_size)], *out_size), input.dtype)
    return max(laid_out(input), turning(made, input) if len(made.shape) == 4 else 0)


pool_sum_op.grad("input")(lambda g, input_shape, geometry, by: window_spread_op(g, input_shape, geometry, by))


@op(half=None, linear=True, shape=shapes.sized, batch=families.images)
def window_spread_op(input: Array, size: tuple[int, ...], geometry: tuple[Any, ...], by: int | str = 1) -> Array:
    """The adjoint of pool_sum.  input: (N, C, *L) -> size (N, C, *S)"""
    return backend.window_spread(input, size, geometry, divisors(by, size[2:], geometry, input.shape[2:]))


@window_spread_op.work
def _(input: Array, by: int | str) -> int:
    return input.nbytes if by != 1 else laid_out(input)


window_spread_op.grad("input")(lambda g, input_shape, geometry, by: pool_sum_op(g, geometry, input_shape[2:], by))


def divisors(by: int | str, spatial: tuple[int, ...], geometry: tuple[Any, ...], out: tuple[int, ...]) -> Any:
    """What each window's sum is divided by, as `pool_sum_op` is told: a number, or an array (*L)."""
    return window_sizes(tuple(spatial), geometry, tuple(out), by == "all") if isinstance(by, str) else by


# Arguments -------------------------------------------------------------------------------------------


def pooled_size(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """How many windows fit in a dimension; in ceil mode the last may reach over the end but not start there."""
    room = size + 2 * p - d * (k - 1) - 1
    n = (-(-room // s) if ceil_mode else room // s) + 1
    if ceil_mode and (n - 1) * s >= size + p:
        n -= 1
    return n


def what_is_pooled(n: int) -> str:
    """What poolings of `n` dimensions take, in words that a shape follows."""
    return f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got: "


def ints_of(name: str, what: str, value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """As `spread`.  Raises RuntimeError in the words of poolings for a sequence of another length."""
    if not isinstance(value, SupportsIndex) and len(value) not in (1, n):
        many = f"a tuple of {('two', 'three')[n > 2]} ints" if n > 1 else "list of ints or tuple of ints of size 1"
        rule = {"stride": "must either be omitted, a single int, or", "dilation": "must be either a single int, or"}
        words = rule.get(what, "must either be a single int, or") if n > 1 else "must be an int,"
        at = f"{name}()" if n == 1 else f"{name}:"
        raise RuntimeError(f"{at} {what} {words} {many} but got size {len(value)}: {list(value)}")
    return spread(name, what, value, n)


def check_pad(name: str, p: int, k: int, d: int) -> None:
    """Raise RuntimeError unless padding by p is one of at most half of a window."""
    own = name == "max_pool1d"
    if p < 0:
        raise RuntimeError(
            f"{name}: {'padding' if own else 'pad'} must be non-negative, but got {'' if own else 'pad: '}{p}"
        )
    if p > ((k - 1) * d + 1) // 2:
        words = ("padding", "kernel size") if own else ("pad", "effective kernel size")
        raise RuntimeError(f"{name}: {words[0]} should be at most half of {words[1]}, but got {words[0]}={p} and "
                           f"kernel_size={k}, dilation {d}")  # fmt: skip


def geometry_of(name: str, n: int, input: Tensor, kernel: int | Sequence[int], stride: object,
                padding: int | Sequence[int], dilation: int | Sequence[int],
                ceil_mode: bool) -> tuple[Any, tuple[int, ...]]:  # fmt: skip
    """The checked geometry of a pool, and its output sizes."""
    given = hashed(kernel), hashed(stride), hashed(padding), hashed(dilation)
    return windows_of(name, n, held(input).shape, *given, bool(ceil_mode))


@lru_cache(1 << 10, typed=True)
def windows_of(name: str, n: int, shape: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool) -> tuple[Any, tuple[int, ...]]:  # fmt: skip
    """As `geometry_of`, of a shape of inputs: the same each step."""
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input. {what_is_pooled(n)}"
                           f"{list(shape)}")  # fmt: skip
    sizes = [
        ints_of(name, what, v, n) for what, v in (("kernel_size", kernel), ("padding", padding), ("dilation", dilation))
    ]
    kernel, padding, dilation = sizes
    no_stride = stride is None or (not hasattr(stride, "__index__") and len(stride) == 0)
    stride = kernel if no_stride else ints_of(name, "stride", stride, n)
    for what, values in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) <= 0:
            word, given = ("must", values[0]) if n == 1 else ("should", values)
            raise RuntimeError(f"{name}: {what} {word} be greater than zero, but got {given}")
    for each in zip(padding, kernel, dilation, strict=True):
        check_pad(name, *each)
    spatial = shape[-n:]
    if any(s == 0 for s in shape[-n - 1 :]):
        raise RuntimeError(f"{name}: Expected input's non-batch dimensions to have positive length. {what_is_pooled(n)}"
                           f"{list(shape)}")  # fmt: skip
    out = tuple(pooled_size(*each, ceil_mode) for each in zip(spatial, kernel, stride, padding, dilation, strict=True))
    if min(out) <= 0:
        given, made = ("x".join(map(str, (shape[-n - 1], *sizes))) for sizes in (spatial, out))
        raise RuntimeError(f"{name}: Given input size: ({given}). Calculated output size: ({made}). Output size is too small. "
                           f"Invalid computed output size: {min(out)}")  # fmt: skip
    return (kernel, stride, padding, dilation), out


def indices_of(which: Array, spatial: tuple[int, ...], geometry: tuple[Any, ...]) -> Array:
    """Flat positions in the input (*S) of the window elements `which` (..., *L), as int64."""
    kernel, stride, padding, dilation = geometry
    n = len(kernel)
    out = which.shape[which.ndim - n :]
    rest = which.astype(np.int64)
    at, apart = rest, 1
    for i in reversed(range(n)):  # in place: integers of eight bytes are large beside what is pooled
        element = rest % kernel[i] if i else rest
        if i:
            rest //= kernel[i]
        element *= dilation[i] * apart
        element += ((np.arange(out[i]) * stride[i] - padding[i]) * apart).reshape(-1, *[1] * (n - 1 - i))
        at = element if i == n - 1 else np.add(at, element, out=at)
        apart *= spatial[i]
    return at


def max_pool(name: str, n: int, input: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int] | None,
             padding: int | Sequence[int], dilation: int | Sequence[int], ceil_mode: bool,
             return_indices: bool) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """Max pooling in n dimensions, with the positions of the maxima if asked."""
    said = f"{name}_with_indices" if n == 1 and return_indices else name  # which has other words for paddings
    geometry, out = geometry_of(said, n, input, kernel, stride, padding, dilation, ceil_mode)
    x, added = batched(input, n)
    if x._array.dtype.kind == "b":
        raise NotImplementedError(f"{name}(): not implemented for bools: convert input with .to(torch.uint8)")
    if x._array.dtype.kind == "c":
        raise NotImplementedError(f"\"{name}\" not implemented for '{older(x.dtype)}': complex numbers have no order")
    y = max_pool_op(x, geometry, out)
    y = reshape_op(y, y.shape[1:]) if added else y
    if not return_indices:
        return y
    if x._meta:
        return y, on_meta(nowhere(y.shape, np.dtype(np.int64)))
    if getattr(x._array, "interpreted", False):
        which = call.apply(with_auxiliaries(max_pool_op.op), (x,), (geometry, out))[1]
    else:
        which = wrap(backend.max_pool(x._array, geometry, out, lowest(x._array.dtype))[1])
    at = window_positions(which, tuple(x.shape[2:]), geometry)
    return y, reshape_op(at, at.shape[1:]) if added else in_order_of(at, x)


@op(half=None, batch=families.targeted)
def window_positions(input: Array, spatial: tuple[int, ...], geometry: tuple[Any, ...]) -> Array:
    """As `indices_of`.  (N, C, *L) -> (N, C, *L) of int64"""
    return indices_of(input, spatial, geometry)


def avg_pool(name: str, n: int, input: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int] | None,
             padding: int | Sequence[int], ceil_mode: bool, count_include_pad: bool,
             divisor_override: Any = None) -> Tensor:  # fmt: skip
    """Average pooling in n dimensions."""
    if isinstance(divisor_override, bool):
        raise TypeError(f"{name}(): argument 'divisor_override' must be int, not bool")
    override = None if divisor_override is None else as_int(divisor_override, name, "divisor_override")
    if override == 0:
        raise RuntimeError(f"{name}: divisor must be not zero")
    if input._array.dtype.kind in "bcW":
        raise NotImplementedError(f"{name}: not implemented for {input.dtype}: convert the input to a floating-point "
                                  "dtype, as in input.float()")  # fmt: skip
    geometry, out = geometry_of(name, n, input, kernel, stride, padding, 1, ceil_mode)
    x, added = batched(input, n)
    by = override if override is not None else "all" if count_include_pad else "inside"
    if x._array.dtype.kind in "iu":
        counts = divisors(by, x.shape[2:], geometry, out)
        counts = counts if isinstance(counts, int) else beside(wrap(counts.astype(x._array.dtype)), x)
        y = pool_sum_op(x, geometry, out).div(counts, rounding_mode="trunc")
    else:
        y = pool_sum_op(x, geometry, out, by)
    return reshape_op(y, y.shape[1:]) if added else y


@lru_cache(1 << 8)
def window_sizes(spatial: tuple[int, ...], geometry: tuple[Any, ...], out: tuple[int, ...], include_pad: bool) -> Any:
    """How many elements each window has: a number, or an array (*L)."""
    counts = np.ones(())
    full = True
    for s, k, st, p, n in zip(spatial, geometry[0], geometry[1], geometry[2], out, strict=True):
        start = np.arange(n) * st - p
        end = np.minimum(start + k, s + p)
        length = end - start if include_pad else np.minimum(end, s) - np.maximum(start, 0)
        full = full and bool((length == k).all())
        counts = counts[..., None] * length
    return math.prod(geometry[0]) if full else counts


# Adaptive --------------------------------------------------------------------------------------------


def adaptive_sizes(name: str, input: Tensor, output_size: int | Sequence[int | None], n: int) -> tuple[int, ...]:
    """The output sizes, None standing for the input's."""
    if len(input.shape) == n and n > 1:
        raise ValueError(f"{name}: Input dimension should be at least {n + 1}, got {list(input.shape)}")
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}")
    given = (output_size,) * n if output_size is None or hasattr(output_size, "__index__") else tuple(output_size)
    if len(given) != n:
        words = "internal error: output_size.size()" if "max" in name else "output_size"
        some = f"argument 'output_size' should contain one int (got {len(given)})" if n == 1 else f"{words} must be {n}"
        raise RuntimeError(f"{name}(): {some}, got {given}")
    whole = [s if o is None else o for o, s in zip(given, input.shape[-n:], strict=True)]
    sizes = listed(whole, name, "output_size")
    if min(sizes) < 0:
        words = "Trying to create tensor with negative dimension" if "max" in name else "negative sizes"
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0, but received {sizes}: {words}"
        )
    if 0 in input.shape[-n:] or (0 in input.shape[1:] and ("max" in name or n == 3)):
        raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                           f"{list(input.shape)}")  # fmt: skip
    return sizes


def bounds(size: int, out: int) -> tuple[Any, Any]:
    """Where each of `out` adaptive windows over `size` elements starts and ends."""
    i = np.arange(out)
    return i * size // max(out, 1), -(-(i + 1) * size // max(out, 1))


@lru_cache(32)
def averaging_taps(size: int, out: int) -> Taps:
    """Row i averages adaptive window i."""
    start, end = bounds(size, out)
    starts = np.concatenate([[0], np.cumsum(end - start)])
    index = np.arange(starts[-1]) + np.repeat(start - starts[:-1], end - start)
    return Taps(size, starts, index, mean=True)


def adaptive_avg_pool(name: str, n: int, input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Averages over windows that divide the input evenly, dimension after dimension."""
    sizes = adaptive_sizes(name, input, output_size, n)
    if input.dtype.category < dtypes.FLOAT:
        raise NotImplementedError(f"{name}: not implemented for {input.dtype}: convert the input to a floating-point "
                                  "dtype, as in input.float()")  # fmt: skip
    if all(o == 1 for o in sizes):
        return in_format_of(input.mean(tuple(range(-n, 0)), True), input, n)
    spatial = tuple(input.shape[-n:])
    if spatial == sizes:
        return input.clone()
    first = next(i for i in range(n) if spatial[i] != sizes[i])
    taps = tuple(map(averaging_taps, spatial[first:], sizes[first:]))
    made: Tensor = resample_op(input, tuple(range(first - n, 0)), taps)
    return made.contiguous() if n == 3 else made


def in_format_of(one: Tensor, images: Tensor, n: int) -> Tensor:
    """One element for each channel, by strides that say so where images or volumes (N, C, *S) lie channels last."""
    turned = images.ndim == n + 2 and lies_channels_last(images._array)
    return one.to(memory_format=channels_last if n == 2 else channels_last_3d) if turned else one


def take_spatial(input: Tensor, at: Tensor) -> Tensor:
    """The elements of input (N, C, *S) at flat positions `at` (N, C, *L)."""
    lead = tuple(input.shape[:2])
    flat = reshape_op(input, (*lead, math.prod(input.shape[2:])))
    rows = reshape_op(at, (*lead, math.prod(at.shape[2:])))
    return reshape_op(flat.gather(2, rows), at.shape)


def adaptive_max_pool(
    name: str, n: int, input: Tensor, output_size: int | Sequence[int | None], return_indices: bool
) -> Any:
    """Maxima of windows that divide the input evenly."""
    sizes = adaptive_sizes(name, input, output_size, n)
    if input.dtype.category != dtypes.FLOAT:
        raise NotImplementedError(f"\"{name}\" not implemented for '{older(input.dtype)}'")
    x, added = batched(input, n)
    at = adaptive_indices_op(x.detach(), sizes)
    y = take_spatial(x, at)
    if added:
        y, at = reshape_op(y, y.shape[1:]), at[0]
    elif n == 2:
        y, at = in_order_of(y, x), in_order_of(at, x)
        if sizes == (1, 1):
            y, at = in_format_of(y, x, n), in_format_of(at, x, n)
    return (y, at) if return_indices else y


@op(half=None, batch=families.images)
def adaptive_indices_op(input: Array, sizes: tuple[int, ...]) -> Array:
    """Flat positions of the maxima of adaptive windows.  (N, C, *S) -> (N, C, *L) of int64"""
    limits = [bounds(s, o) for s, o in zip(input.shape[2:], sizes, strict=True)]
    starts, ends = (tuple(each[i][None] for each in limits) for i in (0, 1))
    return backend.window_maxima(input, starts, ends)


@adaptive_indices_op.shape
def _(input: Array, sizes: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made((*input.shape[:2], *sizes), shapes.INT64)]


@op(half=None, batch=families.images)
def fractional_indices_op(input: Array, samples: Array, kernel: tuple[int, ...], out: tuple[int, ...]) -> Array:
    """Flat positions of the maxima of fractional windows.  (N, C, *S), (N, C, D) -> (N, C, *L) of int64"""
    if 0 in out:
        return np.empty((*input.shape[:2], *out), np.int64)
    n, u = len(kernel), samples.reshape(-1, len(kernel))
    # The samples are in the order width, height of images, but depth, height, width of volumes.
    order = (1, 0) if n == 2 else range(n)
    starts = [fractional_starts(u[:, j], input.shape[2 + i], out[i], kernel[i]) for i, j in enumerate(order)]
    return backend.window_maxima(input, tuple(starts), tuple(s + k for s, k in zip(starts, kernel, strict=True)))


@fractional_indices_op.shape
def _(input: Array, out: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made((*input.shape[:2], *out), shapes.INT64)]


# Fractional ------------------------------------------------------------------------------------------


def fractional_starts(sample: Array, size: int, out: int, k: int) -> Array:
    """Pseudo-random window starts of fractional pooling (Graham, arXiv:1412.6071).  sample: (N, C) -> (N, C, out)"""
    if out == 1:
        return np.full((*sample.shape, 1), size - k)
    alpha = (size - k) / (out - 1)
    i = np.arange(out - 1)
    u = sample[..., None].astype(np.float64)
    starts = ((i + u) * alpha).astype(np.int64) - (u * alpha).astype(np.int64)
    return np.concatenate([starts, np.full((*sample.shape, 1), size - k)], axis=-1)


def fractional_max_pool(name: str, n: int, input: Tensor, kernel: int | Sequence[int],
                        output_size: Sequence[int] | int | None, output_ratio: Any, return_indices: bool,
                        samples: Tensor | None) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
    """Maxima of windows of fixed size at pseudo-random places."""
    kernel = spread(name, "kernel_size", kernel, n)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio, not both or neither")
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: expected {n + 1}D or {n + 2}D tensor, but got {list(input.shape)}")
    if output_size is None:
        ratio = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        output_size = tuple(int(s * r) for s, r in zip(input.shape[-n:], ratio, strict=True))
    out = spread(name, "output_size", output_size, n)
    x, added = batched(input, n)
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
        )
    if min(kernel) < 1:
        raise ValueError(f"{name}: kernel_size must be greater than zero, but got {kernel}")
    for o, k, s in zip(out, kernel, x.shape[2:], strict=True):
        if o + k - 1 > s or o < 0:
            raise RuntimeError(f"{name}: pool size {k} and output size {o} too large relative to input size {s}")
    if samples is None:
        kind = np.float64 if x.dtype.itemsize == 8 else np.float32
        u = randomness.fresh(lambda size: default_generator.numpy.random(size, kind), (*x.shape[:2], n))
    else:
        _check_samples(name, samples, x, n)
        u = samples.detach().reshape(-1, *samples.shape[-2:])[: x.shape[0]].expand(*x.shape[:2], n)  # more are allowed
    at = fractional_indices_op(x.detach(), beside(u, x), kernel, out)
    y = take_spatial(x, at)
    if added:
        y, at = reshape_op(y, y.shape[1:]), at[0]
    return (y, at) if return_indices else y


def _check_samples(name: str, samples: Tensor, x: Tensor, n: int) -> None:
    """Raise RuntimeError unless there are `n` random numbers for each channel of each image; more images are allowed."""
    if samples.dtype != x.dtype:
        raise RuntimeError(
            f"{name}: Expect _random_samples to have the same dtype as input, got {samples.dtype} and {x.dtype}"
        )
    if samples.ndim != 3:
        raise RuntimeError(f"{name}: Expect _random_samples to have 3 dimensions, got {list(samples.shape)}")
    for d, wanted, what in ((1, x.shape[1], "input channel size"), (2, n, f"{n}")):
        if samples.shape[d] != wanted:
            raise RuntimeError(f"{name}: Expect _random_samples.size({d}) equals to {what}; got {samples.shape[d]}.")
    if samples.shape[0] < x.shape[0]:
        raise RuntimeError(f"{name}: Expect _random_samples.size(0) no less then input batch size.")


# Unpooling -------------------------------------------------------------------------------------------


def max_unpool(name: str, n: int, input: Tensor, indices: Tensor, kernel: int | Sequence[int], stride: object,
               padding: int | Sequence[int], output_size: Any) -> Tensor:  # fmt: skip
    """Values put back at the positions that max pooling took them from, zeros elsewhere."""
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: expected {n + 1}D or {n + 2}D input, got {list(input.shape)}")
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(f"{name}: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) "
                           f"but got indices tensor with shape: {list(indices.shape)}")  # fmt: skip
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"{name}: elements in indices should be type int64 but got: {older(indices.dtype)}")
    kernel, padding = spread(name, "kernel_size", kernel, n), spread(name, "padding", padding, n)
    stride = kernel if stride is None else spread(name, "stride", stride, n)
    if min(stride) <= 0:
        raise RuntimeError(f"{name}: strides should be greater than zero, but got stride: {stride}")
    usual = [(s - 1) * st + k - 2 * p for s, st, k, p in zip(input.shape[-n:], stride, kernel, padding, strict=True)]
    if output_size is None:
        out = usual
    else:
        if len(output_size) not in (n, n + 2):
            raise ValueError(f"{name}: output_size should be a sequence containing {n} or {n + 2} elements, but it has a "
                             f"length of {len(output_size)}")  # fmt: skip
        out = [*listed(output_size[-n:], name, "output_size")]
        if any(not u - s < o < u + s for o, u, s in zip(out, usual, stride, strict=True)):
            raise ValueError(
                f"{name}: invalid output_size {list(output_size)}: each must be within a stride of {usual}"
            )
    lead = tuple(input.shape[:-n])
    count = math.prod(out)
    at = everything(indices._array)
    if at.size and (at.min() < 0 or at.max() >= count):
        raise RuntimeError(f"{name}: Found an invalid max index: {at.min() if at.min() < 0 else at.max()} (output volumes "
                           f"are of size {out})")  # fmt: skip
    zeros = beside(wrap(np.zeros((*lead, count), input._array.dtype)), input)
    flat = reshape_op(indices, (*lead, math.prod(input.shape[-n:])))
    spread_out = zeros.scatter(-1, flat, reshape_op(input, (*lead, math.prod(input.shape[-n:]))))
    return reshape_op(spread_out, (*lead, *out))


def _add(fn: Callable[..., Any], name: str, doc: str, namespaces: tuple[str, ...]) -> None:
    for ns in namespaces:
        function(ns=ns)(called(fn, name, doc))


BOTH = ("", "nn.functional")
ONLY = ("nn.functional",)


def _publish_max(n: int) -> None:
    def pool(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
             padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
             return_indices: bool = False) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
        return max_pool(f"max_pool{n}d", n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                     ceil_mode: bool = False, return_indices: bool = True) -> Any:  # fmt: skip
        return max_pool(f"max_pool{n}d", n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    def unpool(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: object = None,
               padding: int | Sequence[int] = 0, output_size: Any = None) -> Tensor:  # fmt: skip
        return max_unpool(f"max_unpool{n}d", n, input, indices, kernel_size, stride, padding, output_size)

    doc = f"Maxima of windows in {n} dimensions.  input: (N, C, *S) or (C, *S) -> (N, C, *L)"
    _add(pool, f"max_pool{n}d", doc, BOTH)
    _add(with_indices, f"max_pool{n}d_with_indices", f"{doc}, and their flat positions in each channel.", ONLY)
    if n == 1:
        function()(with_indices)
    _add(
        unpool, f"max_unpool{n}d", f"Values back at the positions of maxima.  input: (N, C, *L) in {n} dimensions", ONLY
    )


def _publish_adaptive(n: int) -> None:
    def average(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
        return adaptive_avg_pool(f"adaptive_avg_pool{n}d", n, input, output_size)

    def maximum(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Tensor:
        return adaptive_max_pool(f"adaptive_max_pool{n}d", n, input, output_size, return_indices)

    def with_indices(input: Any, output_size: Any, return_indices: bool = True) -> Any:
        return adaptive_max_pool(f"adaptive_max_pool{n}d", n, input, output_size, True)

    where = f"windows that divide {n} dimensions evenly.  input: (N, C, *S) or (C, *S) -> (N, C, *output_size)"
    _add(average, f"adaptive_avg_pool{n}d", f"Averages of {where}", BOTH if n == 1 else ONLY)
    _add(maximum, f"adaptive_max_pool{n}d", f"Maxima of {where}", ONLY)
    _add(with_indices, f"adaptive_max_pool{n}d_with_indices", f"Maxima, and their positions, of {where}", ONLY)
    if n == 1:

        def both(input: Tensor, output_size: Any) -> Any:
            return with_indices(input, output_size)

        both.__doc__ = f"Maxima, and their positions, of {where}"  # what is torch's own gives both always
        function(name="adaptive_max_pool1d")(both)


def _publish_avg(n: int) -> None:
    def average(input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
                padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: object = None) -> Tensor:  # fmt: skip
        return avg_pool(f"avg_pool{n}d", n, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                        divisor_override)  # fmt: skip

    def power(
        input: Tensor, norm_type: Any, kernel_size: int | Sequence[int], stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        if isinstance(norm_type, (int, float)) and math.isinf(norm_type):
            sign = 1 if norm_type > 0 else -1  # the smallest are the largest of the negated ones
            largest: Any = max_pool(f"lp_pool{n}d", n, input.abs() * sign, kernel_size, stride, 0, 1, ceil_mode, False)
            return largest * sign
        kernel = spread(f"lp_pool{n}d", "kernel_size", kernel_size, n)
        mean = avg_pool(f"lp_pool{n}d", n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True)
        return (mean.sign() * mean.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type)

    doc = f"Averages of windows in {n} dimensions.  input: (N, C, *S) or (C, *S) -> (N, C, *L)"
    if n == 1:
        _add(average, "avg_pool1d", doc, BOTH)
    else:
        _add(with_out(average, f"avg_pool{n}d", "same"), f"avg_pool{n}d", doc, ONLY)
    doc = f"Power averages (sum x^p)^(1/p) of windows in {n} dimensions; for p = inf the largest |x|.  input: (N, C, *S) -> (N, C, *L)"
    _add(power, f"lp_pool{n}d", doc, ONLY)


def _publish_fractional(n: int) -> None:
    def pool(input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None,
             output_ratio: Any = None, return_indices: bool = False,
             _random_samples: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:  # fmt: skip
        return fractional_max_pool(f"fractional_max_pool{n}d", n, input, kernel_size, output_size, output_ratio,
                                   return_indices, _random_samples)  # fmt: skip

    doc = f"Maxima of windows at pseudo-random places in {n} dimensions.  input: (N, C, *S) -> (N, C, *output_size)"
    _add(pool, f"fractional_max_pool{n}d", doc, ONLY)

    def pool_with_indices(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Any = None) -> Any:  # fmt: skip
        return pool(input, kernel_size, output_size, output_ratio, True, _random_samples)

    doc = f"`fractional_max_pool{n}d` with the flat index of each maximum, whatever `return_indices` says."
    _add(pool_with_indices, f"fractional_max_pool{n}d_with_indices", doc, ONLY)


for _n in (1, 2, 3):
    _publish_max(_n)
    _publish_adaptive(_n)
    _publish_avg(_n)
    if _n > 1:
        _publish_fractional(_n)
