"""The kernels that the sweep runs, each with arrays of odd sizes: `call(kernels, *arrays)` gives the results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.kernels.pointwise.copies import move
from rushlight.kernels.sums import joined

Array = Any
Build = Callable[[np.random.Generator], list[Array]]  # arrays in float64 (or ints, bools), cast to the dtype later


@dataclass
class Case:
    """A call to be swept; `writes`: the arguments that it changes."""

    name: str
    build: Build
    call: Callable[..., Any]
    writes: tuple[int, ...] = ()
    slow: bool = False  # left out of the fast sweep
    loose: float = 1.0  # how much coarser than others it is compared
    bound: tuple[
        int, ...
    ] = ()  # arguments that other numbers would make meaningless: those keep their own in every layout
    refit: Callable[[list[Any]], list[Any]] | None = (
        None  # makes those anew that follow from arguments of other numbers
    )


SIZES = (0, 1, 2, 3, 7, 31, 33, 65, 257, 1025)
SHAPES: tuple[tuple[int, ...], ...] = ((), *((n,) for n in SIZES), (0, 3), (3, 0), (7, 33), (2, 3, 5), (65, 257))
LEFT_OUT = (*((n,) for n in (2, 3, 31, 65, 257)), (0, 3))  # by the fast sweep
ROWS = ((0, 3), (3, 0), (1, 1), (2, 3), (7, 33), (33, 7), (65, 257), (3, 1025))
UNARY = ("exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu", "softplus")
BINARY = ("silu_backward", "sigmoid_backward", "tanh_backward", "gelu_backward", "softplus_backward", "relu_backward")

STATE = np.arange(625, dtype=np.uint32)  # of a generator


def normal(*shapes: tuple[int, ...]) -> Build:
    return lambda rng: [rng.standard_normal(shape) for shape in shapes]


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def elementwise() -> Iterator[Case]:
    for shape in (*SHAPES, (257, 1025)):
        large = _size(shape) > 20_000 or shape in LEFT_OUT
        for name in UNARY:
            yield Case(f"{name} {shape}", lambda r, s=shape: [abs(r.standard_normal(s)) + 0.1],
                       lambda K, x, n=name: getattr(K, n)(x), slow=large)  # fmt: skip
            yield Case(f"{name} into itself {shape}", lambda r, s=shape: [abs(r.standard_normal(s)) + 0.1],
                       lambda K, x, n=name: getattr(K, n)(x, out=x), (0,), slow=large)  # fmt: skip
        for name in BINARY:
            yield Case(f"{name} {shape}", normal(shape, shape), lambda K, g, x, n=name: getattr(K, n)(g, x), slow=large)
            yield Case(f"{name} into another {shape}", normal(shape, shape, shape),
                       lambda K, g, x, out, n=name: getattr(K, n)(g, x, out=out), (2,), slow=large)  # fmt: skip
        yield Case(f"relu_backward of a mask {shape}", lambda r, s=shape: [r.standard_normal(s), r.random(s) > 0.5],
                   lambda K, g, m: K.relu_backward(g, m), slow=large)  # fmt: skip
        yield Case(f"dropout {shape}", normal(shape), lambda K, x: K.dropout(x, 0.3, STATE), slow=large)
        yield Case(f"dropout_backward {shape}", lambda r, s=shape: [r.standard_normal(s), r.integers(0, 256, (_size(s) + 7) // 8)
                   .astype(np.uint8)], lambda K, g, b: K.dropout_backward(g, b, 0.3), slow=large)  # fmt: skip


PIECES: dict[str, tuple[int, tuple[float, ...]]] = {  # how many arrays, and the numbers behind them
    "sign": (1, ()), "hardswish": (1, ()), "clamp": (1, (-1.0, 0.5)), "leaky_relu": (1, (0.1,)),
    "between_backward": (2, (-1.0, 0.5)), "leaky_relu_backward": (2, (0.1,)), "hardswish_backward": (2, ()),
    "huber": (2, (0.5, 2.0)), "huber_slope": (2, (0.5, 2.0)), "lerp": (2, (0.3,)),
    "hardshrink": (1, (0.5,)), "softshrink": (1, (0.5,)), "hardsigmoid": (1, ()), "softsign": (1, ()),
    "finite": (1, (0.5, 2.0, -2.0)), "angle_of_real": (1, ()), "not_0_backward": (2, ()),
    "elu": (1, (1.5, 1.1, 0.7)), "elu_backward": (2, (1.5, 1.1, 0.7)), "elu_backward_of_input": (2, (1.5, 1.1, 0.7)),
    "logit_backward": (2, (-1.0, 3.0, 0.5)), "fmod": (2, ()), "remainder": (2, ()), "floor_divide": (2, ()), "logaddexp": (2, ()),
    "logaddexp2": (2, ()), "hypot": (2, ()), "copysign": (2, ()), "nextafter": (2, ()),
    "whole_power": (1, (5,)), "whole_power_backward": (2, (4,)), "sin": (1, ()), "cos": (1, ()),
}  # fmt: skip


def piecewise() -> Iterator[Case]:
    for shape in (*SHAPES, (257, 1025)):
        large = _size(shape) > 20_000 or shape in LEFT_OUT
        for name, (count, numbers) in PIECES.items():
            yield Case(f"{name} {shape}", normal(*[shape] * count),
                       lambda K, *a, n=name, m=numbers: getattr(K, n)(*a, *m), slow=large)  # fmt: skip
            yield Case(f"{name} into another {shape}", normal(*[shape] * (count + 1)),
                       lambda K, *a, n=name, m=numbers: getattr(K, n)(*a[:-1], *m, out=a[-1]), (count,), slow=large)  # fmt: skip
        yield Case(f"lerp_each {shape}", normal(shape, shape, shape), lambda K, *a: K.lerp_each(*a), slow=large)
        for name in ("add_product", "add_quotient"):
            yield Case(
                f"{name} {shape}", normal(shape, shape, shape), lambda K, *a, n=name: getattr(K, n)(*a, 0.7), slow=large
            )
        for name in ("fmod", "remainder", "floor_divide"):
            yield Case(
                f"{name} by a number {shape}", normal(shape), lambda K, x, n=name: getattr(K, n)(x, 0.75), slow=large
            )
    for shape, slopes in (
        ((7, 33), (33,)),
        ((65, 257), (257,)),
        ((9, 5, 65), (5, 1)),
        ((4, 31, 7, 5), (1, 31, 1, 1)),
        ((3, 1025), (1,)),
    ):
        yield Case(f"prelu {shape} {slopes}", normal(shape, slopes), lambda K, x, w: K.prelu(x, w))
        yield Case(f"prelu_backward {shape} {slopes}", normal(shape, shape, slopes),
                   lambda K, g, x, w: _summed(K.prelu_backward(g, x, w, True, True), w), loose=4)  # fmt: skip


def _summed(found: tuple[Array, Array], w: Array) -> list[Array]:
    """The gradients of an input and of slopes, the second in the shape of these."""
    to_input, to_slopes = found
    shape = (1,) * (to_slopes.ndim - w.ndim) + w.shape
    over = tuple(d for d, n in enumerate(shape) if n == 1 and to_slopes.shape[d] != 1)
    return [to_input, to_slopes.sum(over, keepdims=True).reshape(w.shape)]


SPECIAL = ("digamma", "erfc", "erfcx", "erfcx_first_slope", "erfinv", "i0", "i0e", "i1", "i1_first_slope", "i1e",
           "i1e_first_slope", "lgamma", "log_ndtr", "ndtr", "ndtri", "sinc_first_slope", "trigamma")  # fmt: skip


def special() -> Iterator[Case]:
    """Numbers over 0 of every size up to some 30, so that several regions of a function meet in a block."""
    for shape in (*SHAPES, (257, 1025)):
        large = _size(shape) > 20_000 or shape in LEFT_OUT
        for name in SPECIAL:
            yield Case(f"{name} {shape}", lambda r, s=shape: [np.exp(r.uniform(-4, 3.5, s)) / 2],
                       lambda K, x, n=name: getattr(K, n)(x), slow=large)  # fmt: skip
            yield Case(f"{name} into another {shape}", lambda r, s=shape: [np.exp(r.uniform(-4, 3.5, s)) / 2, np.ones(s)],
                       lambda K, x, out, n=name: getattr(K, n)(x, out=out), (1,), slow=large)  # fmt: skip


def scans() -> Iterator[Case]:
    for shape in (*SHAPES[1:], (257, 1025), (5, 130, 9), (40, 3, 140)):
        for dim in range(len(shape)):
            large = _size(shape) > 20_000 or shape in LEFT_OUT
            for name in ("add", "multiply", "logaddexp"):
                for back in (False, True):
                    yield Case(f"running {name} {shape} dim {dim} {back}", lambda r, s=shape: [abs(r.standard_normal(s)) * 0.1 + 0.9],
                               lambda K, x, n=name, d=dim, b=back: K.running(getattr(np, n), x, d, b), slow=large,
                               loose=20 if name == "logaddexp" else 1)  # fmt: skip
            if shape[dim]:
                yield Case(f"running_extreme {shape} dim {dim}", normal(shape),
                           lambda K, x, d=dim: K.running_extreme(x, d, False), slow=large)  # fmt: skip
    for shape in ((9000,), (3, 4001), (4001, 3), (257, 65), (20, 31, 40), (2, 70_001)):
        for axes in (None, *((d,) for d in range(len(shape)))):
            yield Case(
                f"add_up {shape} over {axes}",
                normal(shape),
                lambda K, x, a=axes: K.add_up(x, a, dtype=_wide(x).dtype),
                slow=_size(shape) > 50_000,
            )
            for kernel in ("maximum_over", "minimum_over", "product_over", "log_sum"):
                yield Case(f"{kernel} {shape} over {axes}", normal(shape),
                           lambda K, x, n=kernel, a=axes: _joined(n, x, a), slow=_size(shape) > 50_000, loose=20)  # fmt: skip
    for shape in ((4, 6), (65, 130), (3, 2, 1025), (2, 9_000)):
        halved = (shape[0], shape[1] // 2, *shape[2:])
        yield Case(f"glu {shape}", normal(shape), lambda K, x: K.glu(x, 1))
        yield Case(f"glu_backward {shape}", normal(halved, shape), lambda K, g, x: K.glu_backward(g, x, 1))


JOINS = {"maximum_over": np.maximum, "minimum_over": np.minimum, "product_over": np.multiply, "log_sum": np.logaddexp}


def _joined(kernel: str, x: Array, axes: tuple[int, ...] | None) -> Array:
    """What a kernel that has no reference of its own makes of dimensions, or the ufunc that it stands for."""
    found = joined(kernel, x, axes, dtype=_wide(x).dtype)
    return np.asarray(JOINS[kernel].reduce(_wide(x), axes) if found is None else found)


def transforms() -> Iterator[Case]:
    for shape in ((60, 12), (12, 60), (7, 16, 15), (16, 7, 31), (2, 128, 6), (3, 5, 37)):
        for dims in (*((d,) for d in range(len(shape))), tuple(range(len(shape)))):
            half = shape[dims[-1]] - 1
            yield Case(
                f"fourier_half {shape} over {dims}",
                normal(shape),
                lambda K, x, d=dims: _pairs(K.fourier_half(x, d, 0.5)),
                loose=8,
            )
            yield Case(f"fourier {shape} over {dims}", normal(shape, shape),
                       lambda K, x, y, d=dims: _pairs(K.fourier(_complex(x, y), d, True, 1.0)), loose=8)  # fmt: skip
            for n in (2 * half, 2 * half + 1):
                yield Case(f"fourier_whole {shape} over {dims} to {n}", normal(shape, shape),
                           lambda K, x, y, d=dims, n=n: K.fourier_whole(_complex(x, y), d, 1.0, n), loose=8)  # fmt: skip


def _complex(x: Array, y: Array) -> Array:
    """x + i y in the layout of x."""
    out = np.empty_like(x, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


def _pairs(x: Array) -> Array:
    """Complex numbers as pairs of real ones."""
    return np.stack((x.real, x.imag))


def rowwise() -> Iterator[Case]:
    for shape in (*SHAPES, (257, 1025), (5, 130, 9), (2, 3, 140)):
        for axis in range(-1, max(len(shape) - 1, 0)):
            large = _size(shape) > 20_000 or shape in LEFT_OUT
            for name in ("softmax", "log_softmax"):
                yield Case(
                    f"{name} {shape} axis {axis}",
                    normal(shape),
                    lambda K, x, n=name, a=axis: getattr(K, n)(x, a),
                    slow=large,
                )
                yield Case(f"{name}_backward {shape} axis {axis}", normal(shape, shape),
                           lambda K, g, y, n=name, a=axis: getattr(K, n + "_backward")(g, y, a), slow=large)  # fmt: skip
    for r, c in (*ROWS, (301, 311)):
        yield Case(f"add_row {(r, c)}", normal((r, c), (c,)), lambda K, x, y: K.add_row(x, y), (0,), r > 300)
        yield Case(f"add_row of one {(r, c)}", normal((r, c), (1,)), lambda K, x, y: K.add_row(x, y), (0,), r > 300)
        yield Case(f"sum_rows {(r, c)}", normal((r, c)), lambda K, x: K.sum_rows(x), slow=r > 300)
        yield Case(f"across {(r, c)}", normal((r, c), (r, c)), lambda K, x, y: K.across(np.add)(x, y[:1]), slow=r > 300)
        yield Case(
            f"across {(r, c)} turned", normal((r, c), (c, r)), lambda K, x, y: K.across(np.add)(x, y.T), slow=r > 300
        )


def norms() -> Iterator[Case]:
    for r, c in ROWS:
        if c:
            yield Case(
                f"layer_norm {(r, c)}",
                normal((r, c), (c,), (c,)),
                lambda K, x, w, b: K.layer_norm(x, w, b, 1e-5),
                loose=10,  # rows of one number: the mean's rounding is all that is left of them
            )
            yield Case(
                f"layer_norm without a weight {(r, c)}",
                normal((r, c)),
                lambda K, x: K.layer_norm(x, None, None, 1e-5),
                loose=10,
            )
            yield Case(f"rms_norm {(r, c)}", normal((r, c), (c,)), lambda K, x, w: K.rms_norm(x, w, 1e-5))
            yield Case(f"layer_norm_backward {(r, c)}", normal((r, c), (r, c), (r,), (r,), (c,)),
                       lambda K, g, x, m, s, w: K.layer_norm_backward(g, x, _wide(m), _wide(s), w), loose=4)  # fmt: skip
            yield Case(f"rms_norm_backward {(r, c)}", normal((r, c), (r, c), (r,), (c,)),
                       lambda K, g, x, s, w: K.rms_norm_backward(g, x, _wide(s), w), loose=4)  # fmt: skip
    for shape, groups in (((2, 6, 5), 3), ((1, 4, 1), 2), ((3, 6, 4, 7), 6), ((2, 2, 257), 1), ((5, 65, 1), 5)):
        n, c = shape[:2]
        yield Case(f"group_norm {shape} in {groups}", normal(shape, (c,), (c,)),
                   lambda K, x, w, b, k=groups: K.group_norm(x, k, w, b, 1e-5))  # fmt: skip
        yield Case(f"group_norm_backward {shape} in {groups}", normal(shape, shape, (n, groups), (n, groups), (c,)),
                   lambda K, g, x, m, s, w: K.group_norm_backward(g, x, _wide(m), _wide(s), w), loose=4)  # fmt: skip
    for shape in ((2, 6, 5), (65, 7), (33, 1), (1, 3, 2, 2), (3, 65, 1), (2, 2, 257), (7, 257)):
        c = shape[1]
        yield Case(f"batch_stats {shape}", normal(shape), lambda K, x: K.batch_stats(x))
        yield Case(f"batch_apply {shape}", normal(shape, (c,), (c,), (c,), (c,)),
                   lambda K, x, m, s, w, b: K.batch_apply(x, _wide(m), _wide(s), w, b))  # fmt: skip
        yield Case(f"batch_apply {shape} positive", normal(shape, (c,), (c,), (c,), (c,)),
                   lambda K, x, m, s, w, b: K.batch_apply(x, _wide(m), _wide(s), w, b, True))  # fmt: skip
        for training in (True, False):
            yield Case(f"batch_norm_backward {shape} {training}", normal(shape, shape, (c,), (c,), (c,)),
                       lambda K, g, x, m, s, w, t=training: K.batch_norm_backward(g, x, _wide(m), _wide(s), w, training=t),
                       loose=4)  # fmt: skip


def _wide(a: Array) -> Array:
    """Statistics of 16-bit inputs are float32's."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def _indices(n: int, count: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(0, max(count, 1), n)


def along() -> Iterator[Case]:
    for shape, dim, count in (
        ((70,), 0, 90),
        ((5, 33), 1, 40),
        ((33, 5), 0, 17),
        ((3, 7, 65), 1, 9),
        ((4, 300), 0, 3),
        ((2, 300, 33), 1, 3),
        ((3, 5), 1, 0),
    ):
        picked = (*shape[:dim], count, *shape[dim + 1 :])

        def index(r: np.random.Generator, n: int = shape[dim], s: tuple[int, ...] = picked) -> Array:
            return r.integers(0, n, s)

        yield Case(f"gather_along {shape} dim {dim}", lambda r, s=shape, i=index: [r.standard_normal(s), i(r)],
                   lambda K, x, i, d=dim: K.gather_along(x, i, d))  # fmt: skip
        yield Case(f"add_along {shape} dim {dim}", lambda r, s=shape, p=picked, i=index: [r.standard_normal(s), i(r), r.standard_normal(p)],
                   lambda K, x, i, v, d=dim: K.add_along(x, i, d, v), (0,), loose=4)  # fmt: skip
        for how in ("prod", "amax", "amin"):
            yield Case(f"join_along {how} {shape} dim {dim}",
                       lambda r, s=shape, p=picked, i=index: [r.standard_normal(s), i(r), r.standard_normal(p)],
                       lambda K, x, i, v, d=dim, h=how: K.join_along(x, i, d, v, h), (0,), loose=4)  # fmt: skip


def order() -> Iterator[Case]:
    for shape, dim, k in (((300,), 0, 7), ((5, 133), 1, 10), ((133, 5), 0, 3), ((3, 65, 7), 1, 65), ((4, 1025), 1, 1)):
        for largest in (True, False):
            yield Case(
                f"top_k {shape} dim {dim} {k} {largest}",
                normal(shape),
                lambda K, x, d=dim, k=k, s=largest: K.top_k(x, k, d, s)[0],
            )
    for shape, dim in (((300, 33), 0), ((5, 133, 40), 1), ((2, 5000), 0)):
        for least in (False, True):
            yield Case(f"first_extreme {shape} dim {dim} {least}", normal(shape),
                       lambda K, x, d=dim, s=least: K.first_extreme(x, d, s))  # fmt: skip
    for rows, n, values in ((1, 1, 200), (1, 1000, 333), (7, 64, 129), (50, 3, 5)):
        for right in (False, True):
            yield Case(f"search {rows} x {n}, {values} values, right {right}", normal((rows, n), (rows, values)),
                       lambda K, x, v, r=right: K.search(np.sort(x), v, r))  # fmt: skip


def gathers() -> Iterator[Case]:
    sizes = (
        (1, 1, 1),
        (5, 0, 3),
        (5, 3, 0),
        (7, 33, 3),
        (33, 7, 65),
        (3, 1025, 31),
        (90, 300, 1),
        (300, 20, 3),
        (7, 40, 530),
    )
    for rows, n, width in sizes:
        index = _indices(n, rows)
        yield Case(f"index_add_rows {(rows, n, width)}",
                   lambda r, a=rows, m=n, c=width, i=index: [r.standard_normal((a, c)), i(r), r.standard_normal((m, c))],
                   lambda K, d, i, s: K.index_add_rows(d, i, s), (0,), loose=4)  # fmt: skip
        yield Case(f"embedding_backward {(rows, n, width)}",
                   lambda r, m=n, c=width, i=index: [r.standard_normal((m, c)), i(r)],
                   lambda K, g, i, a=rows: K.embedding_backward(g, i, a, 0), loose=4)  # fmt: skip
    for mode, padding in (
        ("nearest", "zeros"),
        ("bilinear", "zeros"),
        ("bicubic", "zeros"),
        ("bicubic", "border"),
        ("bicubic", "reflection"),
    ):
        for shape, points in (((2, 3, 5, 6), 37), ((1, 9, 1, 4), 300)):
            yield Case(f"grid_sample {mode} {padding} {shape} {points}",
                       lambda r, a=shape, n=points: [r.standard_normal(a), r.random((2, a[0], n)) * 9 - 2],
                       lambda K, x, w, h=(mode, padding, False): K.grid_sample(x, w, h), loose=100)  # fmt: skip
            yield Case(f"grid_sample_backward {mode} {padding} {shape} {points}",
                       lambda r, a=shape, n=points: [r.standard_normal((*a[:2], n)), r.standard_normal(a), r.random((2, a[0], n)) * 9 - 2],
                       lambda K, g, x, w, h=(mode, padding, False), a=shape: K.grid_sample_backward(g, x, w, a, (True, True), h), loose=100)  # fmt: skip
    for o, c, i in ((0, 3, 2), (1, 5, 1), (2, 7, 33), (3, 5, 300)):
        target = _indices(o * i, c)
        yield Case(f"cross_entropy {(o, c, i)}",
                   lambda g, a=(o, c, i), t=target: [g.standard_normal(a), t(g), g.random(a[1])],
                   lambda K, x, t, w: K.cross_entropy(x, t, w, 2, 0.1)[:2])  # fmt: skip
        yield Case(f"cross_entropy_backward {(o, c, i)}",
                   lambda g, a=(o, c, i), t=target: [g.random(a[0] * a[2]), g.standard_normal(a), g.random((a[0] * a[2], 2)) + 3, t(g), g.random(a[1])],
                   lambda K, g, x, z, t, w: K.cross_entropy_backward(g, x, _wide(z), t, w, 2, 0.1))  # fmt: skip
    for r, c in ((0, 3), (1, 1), (7, 33), (33, 7), (65, 257)):
        for smoothing in (0.0, 0.1):
            target = _indices(r, c)
            yield Case(f"cross_entropy {(r, c)} {smoothing}",
                       lambda g, a=r, b=c, t=target: [g.standard_normal((a, b)), t(g), g.random(b)],
                       lambda K, x, t, w, s=smoothing: K.cross_entropy(x, t, w, 2, s)[:2])  # fmt: skip
            yield Case(f"cross_entropy_backward {(r, c)} {smoothing}",
                       lambda g, a=r, b=c, t=target: [g.random(a), g.standard_normal((a, b)), g.random((a, 2)) + 3, t(g), g.random(b)],
                       lambda K, g, x, z, t, w, s=smoothing: K.cross_entropy_backward(g, x, _wide(z), t, w, 2, s))  # fmt: skip


# x, w, stride, padding, dilation, groups
CONVOLUTIONS: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 9), (4, 3, 3), (1,), (1,), (1,), 1),
    ((2, 4, 7, 9), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((3, 4, 7, 7), (8, 1, 3, 3), (1, 2), (1, 1), (1, 1), 4),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), (1, 2, 1), (0, 1, 0), (2, 1, 1), 1),
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 5, 33, 31), (33, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 3, 17, 65), (7, 3, 5, 3), (1, 1), (2, 1), (1, 1), 1),
    ((2, 2, 3), (2, 2, 2), (3,), (2,), (2,), 1),
    ((2, 17, 13, 18), (19, 17, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 36, 25, 14), (34, 18, 3, 3), (1, 1), (2, 0), (1, 1), 2),
    ((2, 6, 10, 37), (10, 3, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((1, 2, 9, 9, 63), (5, 2, 3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1),
    ((1, 8, 20000), (6, 8, 3), (1,), (2,), (2,), 1),
    ((2, 12, 26, 27), (9, 12, 4, 4), (2, 2), (1, 1), (1, 1), 1),
)


def windows() -> Iterator[Case]:
    for x, w, stride, padding, dilation, groups in CONVOLUTIONS:
        geometry = (w[2:], stride, padding, dilation)
        out = (
            x[0],
            w[0],
            *((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(x[2:], *geometry, strict=True)),
        )
        more = (stride, padding, dilation, groups)
        yield Case(f"conv {x} {w} {more}", normal(x, w), lambda K, a, b, m=more: K.conv(a, b, *m), loose=2)
        yield Case(
            f"conv_input {x} {w} {more}",
            normal(out, w),
            lambda K, a, b, m=more, s=x: K.conv_input(a, b, s, *m),
            loose=2,
        )
        yield Case(
            f"conv_weight {x} {w} {more}",
            normal(out, x),
            lambda K, a, b, m=more, s=w: K.conv_weight(a, b, s, *m),
            loose=4,
        )
    for shape, geometry in (
        ((2, 3, 9), ((3,), (2,), (1,), (1,))),
        ((2, 3, 7, 9), ((2, 3), (2, 2), (1, 1), (1, 1))),
        ((1, 2, 5, 6, 7), ((2, 3, 1), (1, 2, 1), (0, 1, 0), (2, 1, 1))),
        ((3, 5, 33, 31), ((3, 3), (1, 1), (1, 1), (1, 1))),
    ):
        n = len(geometry[0])
        out = tuple((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(shape[-n:], *geometry, strict=True))
        outputs, taps = (*shape[:-n], *out), math.prod(geometry[0])
        which = _chosen(shape, geometry, out)
        yield Case(
            f"max_pool {shape} {geometry}", normal(shape), lambda K, x, g=geometry, o=out: K.max_pool(x, g, o, -np.inf)
        )
        yield Case(
            f"window_sum {shape} {geometry}", normal(shape), lambda K, x, g=geometry, o=out: K.window_sum(x, g, o)
        )
        yield Case(
            f"window_spread {shape} {geometry}",
            normal(outputs),
            lambda K, y, g=geometry, s=shape: K.window_spread(y, s, g),
        )
        yield Case(f"im2col {shape} {geometry}", normal(shape), lambda K, x, g=geometry: K.im2col(x, g))
        yield Case(f"col2im {shape} {geometry}", normal((shape[0], shape[1] * taps, math.prod(out))),
                   lambda K, y, g=geometry, s=shape: K.col2im(y, s, g))  # fmt: skip
        yield Case(f"pool_scatter {shape} {geometry}", lambda r, o=outputs, w=which: [r.standard_normal(o), w(r)],
                   lambda K, g, w, s=shape, e=geometry: K.pool_scatter(g, w, s, e), bound=(1,))  # fmt: skip
        yield Case(f"pool_gather {shape} {geometry}", lambda r, s=shape, w=which: [r.standard_normal(s), w(r)],
                   lambda K, x, w, e=geometry: K.pool_gather(x, w, e), bound=(1,))  # fmt: skip


def resizing() -> Iterator[Case]:
    """Maps of a few taps, averages and elements that are picked, along one to three dimensions, and their adjoints."""
    rng = np.random.default_rng(3)
    for shape, dims, sizes in (
        ((2, 3, 9), (2,), (21,)),
        ((3, 33, 5, 65), (2, 3), (12, 130)),
        ((2, 7, 9, 20), (1, 2), (15, 4)),
        ((2, 40, 30, 3), (1, 2), (7, 61)),
        ((2, 4, 5, 6, 3), (1, 2, 3), (9, 2, 13)),
        ((1, 2, 3, 70), (2, 3), (1, 3)),
    ):
        for kind in ("weighted", "mean", "picked"):
            taps = tuple(_taps(rng, kind, shape[d], n) for d, n in zip(dims, sizes, strict=True))
            out = tuple(sizes[dims.index(d)] if d in dims else n for d, n in enumerate(shape))
            for words, given, maps in (("", shape, taps), (" turned", out, tuple(each.turned for each in taps))):
                yield Case(f"resample {shape} {sizes} {kind}{words}", normal(given),
                           lambda K, x, d=dims, t=maps: K.resample(x, d, t), loose=4)  # fmt: skip


def paddings() -> Iterator[Case]:
    for shape, pads in (
        ((300, 500), ((1, 2), (3, 0))),
        ((3, 40, 31, 33), ((0, 0), (0, 0), (-2, 5), (1, -1))),
        ((90, 7, 300), ((2, 0), (0, 1), (0, 0))),
    ):
        yield Case(f"pad {shape} {pads}", normal(shape), lambda K, x, p=pads: K.pad(x, p, np.array(0.5, x.dtype)))


def sides() -> Iterator[Case]:
    """Matrices with zeros on one side of a diagonal."""
    for shape in ((65, 70), (3, 40, 33), (1, 4000), (2, 3)):
        for diagonal, upper in itertools.product((0, 5, -5), (False, True)):
            yield Case(f"triangle {shape} {diagonal} {upper}", normal(shape),
                       lambda K, x, d=diagonal, u=upper: K.triangle(x, d, u))  # fmt: skip


def masks() -> Iterator[Case]:
    """Elements where a mask is set, and slices at indices."""
    for shape in ((20_000,), (170, 131), (9000, 3), (2, 3)):
        for share in (0.1, 0.9):

            def mask(r: np.random.Generator, s: tuple[int, ...] = shape, p: float = share) -> list[Array]:
                return [r.standard_normal(s), r.random(s) < p]

            yield Case(f"mask_take {shape} {share}", mask, lambda K, x, m: K.mask_take(x, m))
            yield Case(
                f"mask_put {shape} {share}", mask, lambda K, x, m: K.mask_put(x.reshape(-1)[: np.count_nonzero(m)], m)
            )
            yield Case(f"mask_write {shape} {share}", mask,
                       lambda K, x, m: K.mask_write(x, m, np.arange(np.count_nonzero(m)).astype(x.dtype)), (0,))  # fmt: skip
            yield Case(f"mask_places {shape} {share}", mask, lambda K, x, m: K.mask_places(m))
    for shape, dim in (((300, 131), 0), ((300, 131), 1), ((9, 70, 33), 1)):
        yield Case(f"take_slices {shape} {dim}", lambda r, s=shape, d=dim: [r.standard_normal(s), r.integers(0, s[d], 401)],
                   lambda K, x, i, d=dim: K.take_slices(x, i, d))  # fmt: skip


def maxima() -> Iterator[Case]:
    """Windows that lie anywhere, the same of all planes or others of each."""
    rng = np.random.default_rng(4)
    for shape, sizes, planes in (((2, 3, 9), (4,), 1), ((2, 3, 33, 65), (7, 5), 6), ((1, 2, 5, 6, 70), (3, 2, 9), 1)):
        starts = tuple(rng.integers(0, n, (planes, out)) for n, out in zip(shape[2:], sizes, strict=True))
        ends = tuple(s + 1 + rng.integers(0, n - s) for n, s in zip(shape[2:], starts, strict=True))
        yield Case(
            f"window_maxima {shape} {sizes}", normal(shape), lambda K, x, s=starts, e=ends: K.window_maxima(x, s, e)
        )


def _taps(rng: np.random.Generator, kind: str, size: int, out: int) -> Any:
    from rushlight.kernels import Taps

    counts = np.ones(out, np.int64) if kind == "picked" else rng.integers(kind == "mean", 6, out)
    index = np.sort(rng.integers(0, size, counts.sum()))
    weights = rng.standard_normal(len(index)) if kind == "weighted" else None
    return Taps(size, np.concatenate([[0], np.cumsum(counts)]), index, weights, kind == "mean")


def _chosen(shape: Any, geometry: Any, out: Any) -> Callable[[np.random.Generator], Array]:
    """Window elements that a pool of maxima chooses: none lies in the padding."""
    from rushlight import kernels

    return lambda rng: kernels.max_pool(rng.standard_normal(shape), geometry, out, -np.inf)[1]


def attention() -> Iterator[Case]:
    sizes = ((1, 1, 1, 1, 1, 1), (2, 2, 3, 5, 4, 3), (1, 1, 7, 33, 5, 5), (3, 2, 65, 31, 8, 9), (4, 3, 5, 5, 7, 7), (0, 1, 2, 2, 2, 2),
             (2, 2, 3, 0, 4, 4), (2, 3, 129, 70, 16, 16))  # fmt: skip
    for b, h, n, s, e, v in sizes:
        shapes = (b, h, n, e), (b, h, s, e), (b, h, s, v)
        masks: dict[str, Any] = {"none": None, "(L, 1)": (n, 1), "(1, 1)": (1, 1), "(L, S)": (n, s), "(H, L, S)": (h, n, s),
                                 "(B, 1, L, S)": (b, 1, n, s), "(B, H, L, S)": (b, h, n, s), "(S,)": (s,)}  # fmt: skip
        for (words, mask), causal, drop in itertools.product(masks.items(), (False, True), (None, (0.25, STATE))):
            name = f"{(b, h, n, s, e, v)} mask {words}{' causal' if causal else ''}{' dropout' if drop else ''}"
            for kind in ("added", "bool") if mask else ("none",):
                build = _operands(shapes, mask, kind)
                yield Case(f"sdpa {name} {kind}", build, lambda K, q, k, v, m=None, c=causal, d=drop: K.sdpa(q, k, v, m, c, None, d),
                           slow=(b, n) not in QUICK, loose=2)  # fmt: skip
                for wanted in (False, True) if kind == "added" else (False,):
                    yield Case(f"sdpa_backward {name} {kind} {wanted}", _with_sums(build, (b, h, n, v), causal, drop),
                               lambda K, g, z, q, k, v, m=None, c=causal, d=drop, w=wanted:
                               K.sdpa_backward(g, q, k, v, _wide(z), m, c, None, w, d), slow=(b, n) not in QUICK, loose=8,
                               bound=(1,), refit=lambda a, c=causal, d=drop: [a[0], _sums(a[2:], c, d).astype(a[1].dtype), *a[2:]])  # fmt: skip


QUICK = ((2, 3), (4, 5))  # batch and length of what the fast sweep runs


def _operands(shapes: Any, mask: Any, kind: str) -> Build:
    def build(rng: np.random.Generator) -> list[Array]:
        found = [rng.standard_normal(shape) for shape in shapes]
        if kind == "added":
            found.append(rng.standard_normal(mask))
        if kind == "bool":
            found.append(rng.random(mask) > 0.3)
        return found

    return build


def _with_sums(build: Build, shape: Any, causal: bool, drop: Any) -> Build:
    """The gradient of the output, the logarithms of the sums, and the inputs."""

    def more(rng: np.random.Generator) -> list[Array]:
        inputs = build(rng)
        return [rng.standard_normal(shape), _sums(inputs, causal, drop), *inputs]

    return more


def _sums(inputs: list[Any], causal: bool, drop: Any) -> Array:
    """The logarithms of the sums that attention of these inputs has: with others, probabilities would be no probabilities."""
    from rushlight import kernels

    copies = [a.copy(order="C") for a in inputs]
    found: Array = kernels.sdpa(*copies[:3], copies[3] if len(copies) > 3 else None, causal, None, drop)[1]
    return found


LAYERS: tuple[tuple[list[int], int], ...] = (
    ([2, 2, 2], 1),
    ([9, 4, 4, 1], 7),
    ([1], 33),
    ([3, 3], 65),
    ([0, 0], 3),
    ([8], 48),
)


def recurrent() -> Iterator[Case]:
    """Sequences (rows of each step, hidden units) of each kind of layer, both ways."""
    from rushlight.kernels.recurrent import steps_of

    for (sizes, n), reverse in itertools.product(LAYERS, (False, True)):
        rare = n != 7 or reverse  # for the whole sweep alone
        total, batch, s = sum(sizes), max(sizes), steps_of(sizes, reverse)
        rows, first, name = (total, n), (batch, n), f"{sizes} {n} {'reversed' if reverse else 'forward'}"
        yield Case(f"lstm {name}", normal((total, 4 * n), first, first, (4 * n, n)),
                   lambda K, g, h, c, w, s=s: K.lstm(g, s, h, c, w, None, True), (0,), loose=8, slow=rare)  # fmt: skip
        yield Case(f"lstm_backward {name}", normal(rows, first, first, (total, 4 * n), rows, first, (4 * n, n)),
                   lambda K, d, h, c, g, k, c0, w, s=s: _flat(K.lstm_backward(d, (h, c), g, k, c0, s, w, None)), loose=40, slow=rare)  # fmt: skip
        yield Case(f"lstm_cell {name}", normal((total, 4 * n), (total, 4 * n), rows),
                   lambda K, x, s, c: K.lstm_cell(x, s, c), loose=8, slow=rare)  # fmt: skip
        yield Case(f"lstm_cell_backward {name}", normal(rows, rows, (total, 5 * n), rows),
                   lambda K, dh, dc, k, c: K.lstm_cell_backward(dh, dc, k, c), loose=40, slow=rare)  # fmt: skip
        yield Case(f"gru {name}", normal((total, 3 * n), first, (3 * n, n), (3 * n,)),
                   lambda K, g, h, w, b, s=s: K.gru(g, s, h, w, b, True), (0,), loose=8, slow=rare)  # fmt: skip
        yield Case(f"gru_backward {name}", normal(rows, first, (total, 3 * n), rows, rows, first, (3 * n, n)),
                   lambda K, d, h, g, i, o, h0, w, s=s: K.gru_backward(d, h, g, i, o, h0, s, w), loose=40, slow=rare)  # fmt: skip
        for relu in (False, True):
            yield Case(f"rnn {name} {relu}", normal(rows, first, (n, n)),
                       lambda K, g, h, w, s=s, r=relu: K.rnn(g, s, h, w, r), (0,), loose=8, slow=rare)  # fmt: skip
            yield Case(f"rnn_backward {name} {relu}", normal(rows, first, rows, (n, n)),
                       lambda K, d, h, o, w, s=s, r=relu: K.rnn_backward(d, h, o, s, w, r), loose=40, slow=rare)  # fmt: skip


def _flat(results: Any) -> list[Any]:
    return [a for result in results for a in (result if isinstance(result, tuple) else (result,)) if a is not None]


def _positive(shape: tuple[int, ...], states: int, least: float = 0.0) -> Build:
    """A parameter, its gradient, and states that are positive."""
    return lambda rng: [
        rng.standard_normal(shape),
        rng.standard_normal(shape),
        *(rng.random(shape) + least for _ in range(states)),
    ]


# Steps by rules: the numbers, and how many states.
RULES = {
    "adamax": ((0.02, 0.9, 0.99, 1e-3, 0.1, -1.0), 2),
    "nadam": ((0.01, 0.02, 0.9, 0.99, 0.3, 1e-3, 0.1, 0.9, 1.0), 2),
    "radam": ((0.1, 0.3, 0.4, 0.99, 1e-3, 0.1, 0.9, 1.0), 2),
    "asgd": ((0.1, 0.3, 0.99, 0.1, 1.0), 1),
    "adadelta": ((0.5, 0.9, 1e-3, 0.1, -1.0), 2),
    "rprop": ((0.5, 1.2, 1e-6, 50.0, 1.0), 2),
}


def _ruled(name: str, numbers: tuple[float, ...], states: int) -> Callable[..., None]:
    return lambda K, *arrays: K.step_many(name, [*arrays, *[None] * (3 - states)], [numbers])


def steps() -> Iterator[Case]:
    for shape in ((), (0,), (1,), (7,), (2, 3), (33, 65), (3, 5, 7), (257, 1025)):
        large = _size(shape) > 20_000
        yield Case(f"adam {shape}", _positive(shape, 3), lambda K, *a: K.adam(*a, 3.0, 0.1, 0.9, 0.99, 1e-3, 0.1),
                   (0, 2, 3, 4), large, 4)  # fmt: skip
        yield Case(f"adamw {shape}", _positive(shape, 2),
                   lambda K, p, g, m, v: K.adam(p, g, m, v, None, 3.0, 0.1, 0.4, 0.99, 1e-3, 0.1, True, True), (0, 2, 3), large, 4)  # fmt: skip
        yield Case(f"sgd {shape}", normal(shape, shape), lambda K, p, g: K.sgd(p, g, None, 0.1, 0, 0, 0.1), (0,), large)
        yield Case(f"sgd with momentum {shape}", normal(shape, shape, shape),
                   lambda K, p, g, b: K.sgd(p, g, b, 0.1, 0.9, 0.2, 0.1, True), (0, 2), large)  # fmt: skip
        yield Case(
            f"adagrad {shape}",
            _positive(shape, 1),
            lambda K, *a: K.adagrad(*a, 3.0, 0.1, 0.1, 1e-3, 0.1),
            (0, 2),
            large,
            4,
        )
        yield Case(
            f"lion {shape}", normal(shape, shape, shape), lambda K, *a: K.lion(*a, 0.1, 0.9, 0.99, 0.1), (0, 2), large
        )
        yield Case(f"rmsprop {shape}", _positive(shape, 3, 3.0), lambda K, *a: K.rmsprop(*a, 0.1, 0.9, 1e-3, 0.1, 0.9),
                   (0, 2, 3, 4), large, 4)  # fmt: skip
        for name, (numbers, states) in RULES.items():
            yield Case(f"{name} {shape}", _positive(shape, states, 0.1), _ruled(name, numbers, states),
                       (0, *range(2, 2 + states)), large, 8)  # fmt: skip


def lists() -> Iterator[Case]:
    """What is done to each of several arrays."""
    for shape in SHAPES:
        yield Case(f"squares of each {shape}", normal(shape, shape), lambda K, *a: K.squares_of_each(list(a)))
        yield Case(f"multiply each {shape}", normal(shape, shape), lambda K, *a: K.multiply_each(list(a), 0.3), (0, 1))
        yield Case(f"clamp each {shape}", normal(shape, shape), lambda K, *a: K.clamp_each(list(a), -0.5, 0.25), (0, 1))


# Rows, steps, columns: large enough for the native kernel, the last also for several threads.
PRODUCTS = ((96, 97, 98), (9, 1301, 77), (77, 9, 1301), (1301, 77, 9), (17, 500, 96), (160, 700, 130))
NARROW = ((3, 500, 77), (77, 500, 3), (77, 2, 130))  # few of them, for which numbers of 16 bits have kernels


def products() -> Iterator[Case]:
    """Products that are large enough for the native kernel."""
    for m, k, n in PRODUCTS + NARROW:
        large = m * k * n > 1 << 21
        yield Case(f"matmul {(m, k, n)}", normal((m, k), (k, n)), lambda K, a, b: K.matmul(a, b), (), large, 8)
        yield Case(
            f"matmul and row {(m, k, n)}",
            normal((m, k), (k, n), (n,)),
            lambda K, a, b, r: K.matmul(a, b, None, r),
            (),
            large,
            8,
        )
        yield Case(
            f"matmul transposed {(m, k, n)}", normal((m, k), (n, k)), lambda K, a, b: K.matmul(a, b.T), (), large, 8
        )
    yield Case("matmul of a batch", normal((3, 2, 56, 55), (3, 2, 55, 57)), lambda K, a, b: K.matmul(a, b), loose=8)


def _substituted(upper: bool) -> Any:
    def solved(K: Any, A: Any, x: Any) -> None:
        K.substitute(A, x, upper)

    return solved


def _well_conditioned(*shape: int) -> Any:
    def made(rng: np.random.Generator) -> list[np.ndarray]:
        lead, (n, m) = shape[:-2], shape[-2:]
        return [rng.standard_normal((*lead, n, n)) + 4 * np.eye(n), rng.standard_normal((*lead, n, m))]

    return made


def _definite(*shape: int) -> Any:
    def made(rng: np.random.Generator) -> list[np.ndarray]:
        x = rng.standard_normal((*shape, shape[-1]))
        return [x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])]

    return made


def triangles() -> Iterator[Case]:
    """Substitution, and factors that are triangles; in place."""
    for shape in ((1, 1), (5, 1), (48, 33), (47, 300), (2, 3, 9, 40)):
        for upper in (False, True):
            yield Case(f"substitute {shape} {upper}", _well_conditioned(*shape), _substituted(upper), (1,), False, 64)
        yield Case(
            f"solve_by_lu {shape}", _well_conditioned(*shape), lambda K, A, x: K.solve_by_lu(A, x), (0, 1), False, 512
        )
    for shape in ((1,), (7,), (48,), (131,), (3, 25)):
        yield Case(f"cholesky_factor {shape}", _definite(*shape), lambda K, A: K.cholesky_factor(A), (0,), False, 64)
    for shape in ((1, 1), (9, 4), (12, 12), (13, 60), (60, 13), (131, 130), (2, 49, 49)):
        yield Case(f"lu_factor {shape}", normal(shape), lambda K, A: K.lu_factor(A), (0,), False, 2048)


def pairs_of_rows() -> Iterator[Case]:
    """Distances of rows in the norms that have kernels, and one that has none."""
    for (batch, p, r, m), norm in itertools.product(
        (((), 1, 1, 1), ((), 33, 130, 7), ((2,), 5, 9, 40), ((), 300, 3, 2)), (1.0, 2.0, math.inf, 3.0)
    ):
        sizes = (*batch, p, m), (*batch, r, m)
        yield Case(f"distances {sizes} {norm}", normal(*sizes), lambda K, a, b, n=norm: K.distances(a, b, n), loose=8)
        yield Case(f"distances_backward {sizes} {norm}", normal((*batch, p, r), *sizes),
                   lambda K, g, a, b, n=norm: K.distances_backward(g, a, b, K.distances(a, b, n), n), loose=64)  # fmt: skip
    for norm in (1.0, 2.0, math.inf, 3.0):
        yield Case(f"own_distances {norm}", normal((71, 19)), lambda K, a, n=norm: K.own_distances(a, n), loose=8)
        yield Case(f"own_distances_backward {norm}", normal((71 * 35,), (71, 19)),
                   lambda K, g, a, n=norm: K.own_distances_backward(g, a, K.own_distances(a, n), n), loose=64)  # fmt: skip


def moves() -> Iterator[Case]:
    """Elements that go where few or many are neighbours, turned round and in another order of axes."""
    for shape in ((3, 70, 65), (4, 33, 130), (17, 40, 31), (260, 257), (1, 2, 9_000), (5, 300, 40)):
        for order in itertools.permutations(range(len(shape))):
            yield Case(
                f"move {shape} as {order}", normal(shape), lambda K, x, o=order: _moved(x, o), slow=order[0] == 1
            )


def _moved(x: Array, order: tuple[int, ...]) -> list[Array]:
    """The elements, and those turned round along the last axis, in an array whose axes lie in another order."""
    made = []
    for a in (x, x[..., ::-1]):
        out = np.empty([x.shape[d] for d in order], x.dtype).transpose(np.argsort(order))
        made.append(move(a, out))
    return made


def cases() -> list[Case]:
    """All of them, by name."""
    return [
        case
        for family in (
            elementwise,
            piecewise,
            special,
            scans,
            transforms,
            products,
            triangles,
            pairs_of_rows,
            along,
            rowwise,
            norms,
            order,
            gathers,
            windows,
            resizing,
            sides,
            masks,
            maxima,
            paddings,
            attention,
            recurrent,
            steps,
            lists,
            moves,
        )
        for case in family()
    ]
