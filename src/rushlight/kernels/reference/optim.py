"""Optimizer steps in place, in NumPy, block by block: no temporary is larger than ``BLOCK`` elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.kernels.dispatch import rounded, widened

BLOCK = 65536


def fitted(param: Array, grad: Array, *states: Array | None) -> tuple[Any, ...]:
    """The arrays of a step in the parameter's shape: the gradient broadcast, states that lack leading ones seen with them.

    Raises RuntimeError for others, before anything is written.
    """
    shape = param.shape
    grad = grad if grad.shape == shape else _spread(grad, shape)
    return (param, grad, *(a if a is None or a.shape == shape else _seen(a, shape) for a in states))


def _spread(grad: Array, shape: tuple[int, ...]) -> Array:
    try:
        found = np.broadcast_shapes(grad.shape, shape)
    except ValueError:
        raise RuntimeError(f"{_clash(shape, grad.shape)}: the gradient {_ADVICE}") from None
    if found != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(found)}: the "
                           f"gradient {_ADVICE}")  # fmt: skip
    return np.broadcast_to(grad, shape)


def _seen(state: Array, shape: tuple[int, ...]) -> Array:
    if (1,) * (len(shape) - state.ndim) + state.shape == shape:
        return state[(None,) * (len(shape) - state.ndim)]
    raise RuntimeError(f"{_clash(shape, state.shape)}: a state {_ADVICE}")


_ADVICE = (
    "no longer fits the parameter. Was p.data replaced, or a checkpoint of another model loaded? Clear p.grad and the "
    "optimizer's state of p."
)


def _clash(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """The first dimension from the end in which shapes differ, in PyTorch's words."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i]:
            at = max(len(a), len(b)) - i
            return f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton dimension {at}"
    return f"The shapes {list(a)} and {list(b)} must match"


def blocks(*arrays: Array | None) -> Iterator[tuple[Any, ...]]:
    """Writable views of the equally shaped arrays (None stays None), each of at most ``BLOCK`` elements.

    Raises RuntimeError if their shapes differ.
    """
    first = arrays[0]
    assert first is not None
    for a in arrays:
        if a is not None and a.shape != first.shape:
            raise RuntimeError(f"{_clash(first.shape, a.shape)}: an array {_ADVICE}")
    if all(a is None or a.flags.c_contiguous for a in arrays):
        flat = [None if a is None else a.reshape(-1) for a in arrays]
        for start in range(0, first.size, BLOCK):
            yield tuple(None if a is None else a[start : start + BLOCK] for a in flat)
    elif first.size <= BLOCK or first.ndim == 0:
        yield arrays
    else:
        axis = int(np.argmax(first.shape))
        half = first.shape[axis] // 2
        for part in (slice(None, half), slice(half, None)):
            at = (slice(None),) * axis + (part,)
            yield from blocks(*(None if a is None else a[at] for a in arrays))


def runs_of_rows(matrix: Array, elements: int | None = None) -> Iterator[slice]:
    """Runs of rows of a matrix that together have about so many elements, by default those of a block."""
    count = max(1, (elements or BLOCK) // max(matrix.shape[1], 1))
    return (slice(start, start + count) for start in range(0, len(matrix), count))


def _wide(a: Array | None) -> Any:
    """16-bit blocks in float32, others themselves."""
    return a if a is None or a.dtype.itemsize != 2 else widened(a)


def _store(pairs: list[tuple[Any, Any]]) -> None:
    for block, wide in pairs:
        if block is not None and block is not wide:
            rounded(wide, block.dtype, block)


def _direction(p: Array, g: Array, weight_decay: float, maximize: bool) -> Array:
    """The gradient with its sign and weight decay, in an array of its own."""
    d = np.negative(g) if maximize else np.array(g)
    if weight_decay:
        d += weight_decay * p
    return d


def _lerp(a: Array, b: Array, weight: float) -> None:
    """a += weight * (b - a), in the form that is exact at the nearer end, as PyTorch has it."""
    if abs(weight) < 0.5:
        a += weight * (b - a)
    else:
        a[...] = b - (b - a) * (1 - weight)


def adam(
    p: Array,
    g: Array,
    m: Array,
    v: Array,
    top: Array | None,
    step_size: float,
    beta1: float,
    beta2: float,
    root_correction2: float,
    eps: float,
    decay: float,
    shrink: float,
    sign: float,
) -> None:
    with np.errstate(all="ignore"):
        for block in blocks(p, g, m, v, top):
            bp, bg, bm, bv, bt = (_wide(a) for a in block)
            if shrink != 1:
                bp *= shrink
            d = _direction(bp, bg, decay, sign < 0)
            _lerp(bm, d, 1 - beta1)
            bv *= beta2
            d *= d
            d *= 1 - beta2
            bv += d
            if bt is not None:
                np.maximum(bt, bv, out=bt)
            np.sqrt(bv if bt is None else bt, out=d)
            d /= root_correction2
            d += eps
            np.divide(bm, d, out=d)
            d *= step_size
            bp -= d
            _store([(block[0], bp), (block[2], bm), (block[3], bv), (block[4], bt)])


def sgd(
    p: Array,
    g: Array,
    buffer: Array | None,
    lr: float,
    momentum: float,
    dampening: float,
    decay: float,
    sign: float,
    nesterov: int,
    first: int,
) -> None:
    with np.errstate(all="ignore"):
        for block in blocks(p, g, buffer):
            bp, bg, bb = (_wide(a) for a in block)
            d = _direction(bp, bg, decay, sign < 0)
            if bb is not None:
                if first:
                    bb[...] = d
                else:
                    bb *= momentum
                    bb += (1 - dampening) * d
                if nesterov:
                    d += momentum * bb
                else:
                    d[...] = bb
            d *= lr
            bp -= d
            _store([(block[0], bp), (block[2], bb)])


def adagrad(p: Array, g: Array, total: Array, lr: float, eps: float, decay: float, sign: float) -> None:
    with np.errstate(all="ignore"):
        for block in blocks(p, g, total):
            bp, bg, bt = (_wide(a) for a in block)
            d = _direction(bp, bg, decay, sign < 0)
            bt += d * d
            d *= lr
            d /= np.sqrt(bt) + eps
            bp -= d
            _store([(block[0], bp), (block[2], bt)])


def rmsprop(
    p: Array,
    g: Array,
    square: Array,
    buffer: Array | None,
    mean: Array | None,
    lr: float,
    alpha: float,
    eps: float,
    decay: float,
    momentum: float,
    sign: float,
) -> None:
    with np.errstate(all="ignore"):
        for block in blocks(p, g, square, buffer, mean):
            bp, bg, bs, bb, ba = (_wide(a) for a in block)
            d = _direction(bp, bg, decay, sign < 0)
            bs *= alpha
            bs += (1 - alpha) * d * d
            scale = bs
            if ba is not None:
                _lerp(ba, d, 1 - alpha)
                scale = bs - ba * ba
            d /= np.sqrt(scale) + eps
            if bb is not None:
                bb *= momentum
                bb += d
                d[...] = bb
            d *= lr
            bp -= d
            _store([(block[0], bp), (block[2], bs), (block[3], bb), (block[4], ba)])


def by_rule(rule: Callable[..., tuple[Any, ...]], arrays: tuple[Array, ...], numbers: tuple[Any, ...]) -> None:
    """A step by a formula that says what a parameter and its states become: see ``rules``."""
    code = rule.__code__
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    options = dict(zip(names, numbers, strict=True))
    with np.errstate(all="ignore"):
        for block in blocks(*arrays):
            p, g, *states = (_wide(a) for a in block)
            for old, new in zip((block[0], *block[2:]), rule(np, p, g, *states, **options), strict=True):
                if old.dtype.itemsize == 2:
                    rounded(new, old.dtype, old)
                else:
                    old[...] = new


def lion(p: Array, g: Array, mean: Array, lr: float, beta1: float, beta2: float, shrink: float, sign: float) -> None:
    with np.errstate(all="ignore"):
        for block in blocks(p, g, mean):
            bp, bg, bm = (_wide(a) for a in block)
            bp[...], bm[...] = lion_rule(bp, bg, bm, lr, beta1, beta2, shrink, sign)
            _store([(block[0], bp), (block[2], bm)])


def lion_rule(
    p: Array, g: Array, m: Array, lr: float, beta1: float, beta2: float, shrink: float, sign: float
) -> tuple[Any, ...]:
    d = sign * g
    return p * shrink - lr * np.sign(beta1 * m + (1 - beta1) * d), beta2 * m + (1 - beta2) * d
