"""Padding: constant by slices, the other modes by slices that repeat others, or by an index for each dimension where some are cut."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.dispatch import families, shapes
from rushlight.dispatch.compute import fitted, refuse_overflow
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import listed
from rushlight.dispatch.formats import channels_last_order, lies_channels_last, turned_back
from rushlight.dispatch.registry import function, op
from rushlight.dispatch.rules import laid_out
from rushlight.kernels.dispatch import recast, up
from rushlight.kernels.reference.resample import Taps
from rushlight.ops.elementwise.convert import in_order_of
from rushlight.tensor import Tensor, wrap


def _slices(pads: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """For pads [(before, after)] of each dimension: where in the input, and where in the output, the kept part is."""
    source = tuple(slice(max(-b, 0), n - max(-a, 0)) for (b, a), n in zip(pads, shape, strict=True))
    target = tuple(slice(max(b, 0), n + b + a - max(a, 0)) for (b, a), n in zip(pads, shape, strict=True))
    return source, target


@op(aten_call="padded", shown="constant_pad_nd", complex_half="moves", batch=families.shifted)
def pad_op(input: Array, pads: tuple[Any, ...], value: float) -> Array:
    """Pads ((before, after), ...), negative ones cut.  (*S) -> (*(S + before + after))"""
    number = fitted("constant_pad_nd", value, input.dtype, True)
    if input.dtype.kind == "u" and value < 0:  # which assigning to elements wraps
        refuse_overflow("constant_pad_nd", input.dtype)
    if input.flags.c_contiguous:
        return backend.pad(input, pads, number)
    if not lies_channels_last(input):  # the gradient of a sum, say, which the kernel would copy
        source, target = _slices(pads, input.shape)
        out = np.full(_padded(input.shape, pads), number, input.dtype)
        out[target] = input[source]
        return out
    order = channels_last_order(input.ndim)
    return turned_back(backend.pad(input.transpose(order), tuple(pads[d] for d in order), number), order)


@pad_op.shape
def _(input: Array, pads: tuple[tuple[int, ...], ...]) -> list[shapes.Made]:
    return [shapes.Made(tuple(n + sum(p) for n, p in zip(input.shape, pads, strict=True)), input.dtype)]


pad_op.grad("input")(lambda g, pads: pad_op(g, tuple((-b, -a) for b, a in pads), 0))


def pairs(name: str, pad: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """PyTorch's flat list, last dimension first, as (before, after) of every dimension."""
    pad = listed(pad, name, "pad")
    if len(pad) % 2:
        raise RuntimeError(f"{name}: Padding length must be divisible by 2, got {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(f"{name}: padding length should be less than or equal to two times the input dimension but "
                           f"got padding length {len(pad)} and input of dimension {ndim}")  # fmt: skip
    given = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return tuple([(0, 0)] * (ndim - len(given)) + given)


@function()
def constant_pad_nd(input: Tensor, pad: int | Sequence[int], value: complex = 0) -> Tensor:
    """The input with `pad` elements of `value` before and after each dimension, last first; negative pads cut."""
    if value is None:
        raise TypeError("constant_pad_nd(): argument 'value' (position 3) must be Number, not NoneType")
    pads = pairs("constant_pad_nd", pad, len(input.shape))
    for i, ((b, a), n) in enumerate(zip(pads, input.shape, strict=True)):
        if n + b + a < 0:
            raise RuntimeError(f"constant_pad_nd: the input size {n}, plus negative padding {b} and {a} resulted in a "
                               f"negative output size, which is invalid (dimension {i})")  # fmt: skip
        if n + min(b, 0) + min(a, 0) < 0:
            raise RuntimeError(f"constant_pad_nd: narrow(): length must be non-negative: paddings {b} and {a} cut away more than "
                               f"the {n} elements of dimension {i}")  # fmt: skip
    return pad_op(input, pads, value)


def sources(mode: str, n: int, before: int, after: int) -> Array:
    """For each position of a padded dimension of size n, the position in the input that it repeats."""
    at = np.arange(-before, n + after)
    if mode == "circular":
        # What negative padding cuts is gone before the rest wraps around.
        first, kept = max(-before, 0), n - max(-before, 0) - max(-after, 0)
        return first + repeated(mode, kept, at - first)
    return repeated(mode, n, at)


def repeated(mode: str, n: int, at: Array) -> Array:
    """The elements of a dimension of size n that positions, also outside of it, repeat."""
    if mode == "replicate":
        return at.clip(0, n - 1)
    if mode == "circular":
        return at % n
    period = max(2 * (n - 1), 1)
    folded = np.abs(at) % period
    return np.where(folded >= n, period - folded, folded)


@functools.lru_cache(32)
def taps_of(mode: str, n: int, before: int, after: int) -> Taps:
    """Which element of a dimension of size n each position of the padded one repeats."""
    return Taps.of(n, sources(mode, n, before, after)[:, None])


def _has_many_rows(x: Array, pads: tuple[Any, ...]) -> bool:
    """Whether places along the dimensions that are padded are few beside the elements: else they are not listed."""
    return bool(x.size >= 16 * sum(x.shape[d] for d in _padded_dims(pads)))


def borders(mode: str, n: int, before: int, after: int, start: int = 0) -> list[tuple[slice, slice]]:
    """Positions outside of a dimension of size n, counted from the first that is padded, and the elements that they repeat, counted
    from `start`, run by run."""
    found = []
    for first, count in ((-before, before), (n, after)):
        of = repeated(mode, n, np.arange(first, first + max(count, 0))) + start
        cuts = [0, *(np.nonzero(np.diff(of, 2))[0] + 2).tolist(), len(of)] if len(of) else []
        found += [(slice(i + first + before, j + first + before), run_of(of[i:j])) for i, j in itertools.pairwise(cuts)]
    return found


def run_of(at: Array) -> slice:
    """The slice that gives positions of one distance; of positions that are all the same, that one."""
    first, last, step = int(at[0]), int(at[-1]), int(at[1] - at[0]) if len(at) > 1 else 0
    if not step:
        return slice(first, first + 1)
    end = last + (1 if step > 0 else -1)
    return slice(first, None if end < 0 else end, step)


def _padded_dims(pads: tuple[Any, ...]) -> tuple[int, ...]:
    """The dimensions from the first that is padded on."""
    return tuple(range(next((d for d, pad in enumerate(pads) if any(pad)), len(pads)), len(pads)))


def _padded(shape: tuple[int, ...], pads: tuple[tuple[int, ...], ...], sign: int = 1) -> tuple[int, ...]:
    return tuple(n + sign * sum(p) for n, p in zip(shape, pads, strict=True))


@op(name="pad_repeated", linear=True, complex_half="moves", batch=families.shifted)
def repeated_op(input: Array, pads: tuple[Any, ...], mode: str) -> Array:
    """Pads ((before, after), ...) that repeat slices of the input.  (*S) -> (*(S + before + after))"""
    if _has_many_rows(input, pads):
        dims = _padded_dims(pads)
        return backend.resample(input, dims, tuple([taps_of(mode, input.shape[d], *pads[d]) for d in dims]))
    out: Any = np.empty(_padded(input.shape, pads), input.dtype)
    inner = _slices(pads, input.shape)[1]
    out[inner] = input
    for d in reversed(range(out.ndim)):  # what lies before it is padded later, and what follows is whole
        for to, of in borders(mode, input.shape[d], pads[d][0], pads[d][1], pads[d][0]):
            out[(*inner[:d], to)] = out[(*inner[:d], of)]
    return out


@op(half=None, linear=True, batch=families.shifted)
def repeated_adjoint(input: Array, pads: tuple[Any, ...], mode: str) -> Array:
    """Pads added where they are from: the adjoint of `repeated_op`.  (*(S + before + after)) -> (*S)"""
    if _has_many_rows(input, pads):
        dims = _padded_dims(pads)
        taps = tuple([taps_of(mode, input.shape[d] - sum(pads[d]), *pads[d]).turned for d in dims])
        return backend.resample(input, dims, taps)
    (wide,) = up(input)
    for d, (b, a) in enumerate(pads):
        if b or a:
            n = wide.shape[d] - b - a
            lead: Any = (slice(None),) * d
            out: Any = wide[(*lead, slice(b, b + n))].copy()
            for at, to in borders(mode, n, b, a):
                part = wide[(*lead, at)]
                out[(*lead, to)] += part.sum(d, keepdims=True, dtype=part.dtype) if to.step is None else part
            wide = out
    return recast(wide, input.dtype)


@repeated_op.shape
def _(input: Array, pads: tuple[tuple[int, ...], ...]) -> list[shapes.Made]:
    return [shapes.Made(_padded(input.shape, pads), input.dtype)]


@repeated_adjoint.shape
def _(input: Array, pads: tuple[tuple[int, ...], ...]) -> list[shapes.Made]:
    return [shapes.Made(_padded(input.shape, pads, -1), input.dtype)]


@repeated_adjoint.work
def _(input: Array, pads: tuple[tuple[int, ...], ...]) -> int:
    return laid_out(input) if _has_many_rows(input, pads) else 0


repeated_op.grad("input")(lambda g, pads, mode: repeated_adjoint(g, pads, mode))
repeated_adjoint.grad("input")(lambda g, pads, mode: repeated_op(g, pads, mode))


def check(mode: str, input: Tensor, pads: tuple[tuple[int, ...], ...], count: int) -> None:
    """Raise RuntimeError for paddings that a mode does not allow."""
    shape = tuple(input.shape)
    if len(shape) not in (count + 1, count + 2):
        raise NotImplementedError(f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: pad "
                                  f"with mode='{mode}' got input of shape {list(shape)}")  # fmt: skip
    for i, ((b, a), n) in enumerate(zip(pads, shape, strict=True)):
        if mode == "circular" and n == b == a == 0:
            continue  # nothing is to be repeated
        limit = n - 1 if mode == "reflect" else None
        if mode == "circular" and max(b, a) > n:
            raise RuntimeError(
                f"pad: Padding value causes wrapping around more than once: ({b}, {a}) at dimension {i} of input {list(shape)}"
            )
        if limit is not None and (b or a) and max(b, a) > limit:
            raise RuntimeError(f"pad: Padding size should be less than the corresponding input dimension for "
                               f"mode='{mode}', but got padding ({b}, {a}) at dimension {i} of input {list(shape)}")  # fmt: skip
        if n + b + a <= 0 and i >= len(shape) - count:
            raise RuntimeError(
                f"pad: input of shape {list(shape)} is too small for padding ({b}, {a}) at dimension {i}"
            )
        if n == 0 and i > 0:
            least = min(len(shape), count + 1)
            raise RuntimeError(f"pad: Expected {least}D or {least + 1}D (batch mode) tensor with possibly 0 batch size and other "
                               f"non-zero dimensions for input, but got: {list(shape)}")  # fmt: skip


@function(ns="nn.functional")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: complex | None = None) -> Tensor:
    """The input padded before and after each dimension, last first.

    mode: "constant" (with `value`, default 0), "reflect", "replicate" or "circular".
    """
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}: pad knows constant, reflect, replicate, circular")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    pads = pairs("pad", pad, len(input.shape))
    check(mode, input, pads, len(pad) // 2)
    if not any(map(any, pads)):
        return input.clone()
    if min(map(min, pads)) >= 0 and 0 not in input.shape:
        padded = repeated_op(input, pads, mode)
        return padded if mode == "circular" else in_order_of(padded, input)
    given = input
    for d, (b, a) in enumerate(pads):
        if b or a:
            index = wrap(sources(mode, input.shape[d], b, a).astype(np.int64))
            input = input.index_select(d, index)
    return input if mode == "circular" else in_order_of(input, given)
