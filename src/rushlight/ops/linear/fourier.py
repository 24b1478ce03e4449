"""Discrete Fourier transforms: three linear operators and their adjoints; the public functions choose sizes and scales.

Legend: n the length of a transformed dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtype_words import older
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.basics.naming import called
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, numpy_names, wrap_dims
from rushlight.dispatch.options import check_options, made
from rushlight.dispatch.registry import function, op
from rushlight.kernels.fourier import working_bytes
from rushlight.kernels.reference.fourier import complex_of, real_of, resized_in
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.shape.padding import pad_op
from rushlight.tensor import Tensor, layout, wrap

NS = "fft"


@op(aten=("_fft_c2c",), linear=True, batch=families.shifted)
def c2c_op(input: Array, dims: tuple[int, ...], scale: float, forward: bool) -> Array:
    """The complex transform over `dims`, times `scale`; without `forward` with the opposite sign in the exponent."""
    return kernels.fourier(input, dims, forward, scale)


@c2c_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [shapes.Made(input.shape, complex_of(input.dtype))]


@c2c_op.work
def _(input: Array, dims: tuple[int, ...]) -> int:
    return working_bytes(input, dims)


c2c_op.grad("input")(lambda g, dims, scale, forward: c2c_op(g, dims, scale, not forward))


@op(aten=("_fft_r2c",), linear=True, batch=families.shifted)
def r2c_op(input: Array, dims: tuple[int, ...], scale: float) -> Array:
    """The transform of real numbers over `dims`: of the last of them, the half up to n // 2."""
    return kernels.fourier_half(input, dims, scale)


@r2c_op.shape
def _(input: Array, dims: tuple[int, ...]) -> list[shapes.Made]:
    return [shapes.Made(resized_in(input.shape, dims[-1], input.shape[dims[-1]] // 2 + 1), complex_of(input.dtype))]


@r2c_op.work
def _(input: Array, dims: tuple[int, ...]) -> int:
    return working_bytes(input, dims)


@r2c_op.grad("input")
def _(g: Array | Tensor, input_shape: tuple[int, ...], dims: tuple[int, ...], scale: float) -> Array | Tensor:
    return c2r_op(g * weights(g, dims[-1], input_shape[dims[-1]], 0.5), dims, scale, input_shape[dims[-1]])


@op(aten=("_fft_c2r",), linear=True, batch=families.shifted)
def c2r_op(input: Array, dims: tuple[int, ...], scale: float, n: int) -> Array:
    """The real transform of a half: the adjoint sign; the last of `dims` gets length n."""
    return kernels.fourier_whole(input, dims, scale, n)


@c2r_op.shape
def _(input: Array, dims: tuple[int, ...], n: int) -> list[shapes.Made]:
    return [shapes.Made(resized_in(input.shape, dims[-1], n), real_of(input.dtype))]


@c2r_op.work
def _(input: Array, dims: tuple[int, ...], n: int) -> int:
    return working_bytes(input, dims, n)


@c2r_op.grad("input")
def _(g: Array | Tensor, input_shape: tuple[int, ...], dims: tuple[int, ...], scale: float, n: int) -> Array:
    y = r2c_op(g, dims, scale)
    return y * weights(y, dims[-1], n, 2.0)


def weights(y: Array | Tensor, dim: int, n: int, inner: float) -> Array | Tensor:
    """`inner` for the columns of the half `y` that stand for two of n, and 1 for the first, and the last of an even length.

    The transform to real numbers counts those twice, and that of real numbers leaves one of two out.
    """
    found = np.full(y.shape[dim], inner)
    found[0] = 1
    if n % 2 == 0:
        found[-1] = 1
    shape = [1] * len(y.shape)
    shape[dim] = len(found)
    made = found.reshape(shape).astype(_real_of(y))
    return wrap(made) if isinstance(y, Tensor) else made


def _real_of(y: Array | Tensor) -> type[Any]:
    dtype = y._array.dtype if isinstance(y, Tensor) else y.dtype
    return np.float32 if dtype.itemsize == 8 else np.float64


# Arguments -------------------------------------------------------------------------------------------


def to_float(name: str, x: Tensor | list[Any], complex_too: bool) -> Tensor:
    """Integers as the default float; reals as complex if asked.  Raises TypeError/RuntimeError for what cannot be."""
    if not isinstance(x, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(x)}")
    if x.dtype.category < dtypes.FLOAT:
        x = x.to(dtypes.get_default_dtype())
    if x.dtype.itemsize == 2:
        raise RuntimeError(f"fft_{name}: Unsupported dtype {older(x.dtype)}: convert to float32")
    return x.to(x.dtype.to_complex()) if complex_too and not x.dtype.is_complex else x


def several(given: Any) -> tuple[Any, ...]:
    """One dimension or size, which may be a tensor of one number, or several, as a tuple."""
    return (given,) if isinstance(given, Tensor) or not hasattr(given, "__iter__") else tuple(given)


def one_dim(name: str, x: Tensor, dim: int) -> int:
    """The dimension of a one-dimensional transform, not negative."""
    ndim = x.ndim
    if not ndim:
        raise IndexError(f"fft_{name}: Dimension specified as {dim} but tensor has no dimensions")
    dim = as_int(dim, f"fft_{name}", "dim")
    if not -ndim <= dim < ndim:
        raise IndexError(f"fft_{name}: Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
                         f"{dim})")  # fmt: skip
    return dim % ndim


def check_points(name: str, n: int) -> None:
    """Raise RuntimeError for a transform of nothing."""
    if n < 1:
        raise RuntimeError(f"fft_{name}: Invalid number of data points ({n}) specified")


def many_dims(
    name: str, x: Tensor, s: int | Sequence[int] | None, dim: tuple[int, ...]
) -> tuple[tuple[int, ...], list[int]]:
    """Dimensions and sizes of a transform of several dimensions."""
    ndim = x.ndim
    s = s if s is None else several(s)
    if dim is not None:
        given = several(dim)
        dims = tuple(one_dim(name, x, d) for d in given)
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"fft_{name}: FFT dims must be unique, got {given}")
    elif s is not None:
        if len(s) > ndim:
            raise RuntimeError(
                f"fft_{name}: Got shape with {len(s)} values but input tensor only has {ndim} dimensions."
            )
        dims = tuple(range(ndim - len(s), ndim))
    else:
        dims = tuple(range(ndim))
    if s is not None and len(s) != len(dims):
        raise RuntimeError(f"fft_{name}: When given, dim and shape arguments must have the same length, got {len(dims)} and "
                           f"{len(s)}")  # fmt: skip
    sizes = [x.shape[d] if s is None or s[i] == -1 else as_int(s[i], f"fft_{name}", "s") for i, d in enumerate(dims)]
    check_points(name, min(sizes, default=1))
    return dims, sizes


def resized(x: Tensor, dims: tuple[int, ...], sizes: list[Any]) -> Tensor:
    """The input cut or filled with zeros to `sizes` in `dims`."""
    pads = [(0, 0)] * x.ndim
    for d, n in zip(dims, sizes, strict=True):
        pads[d] = (0, n - x.shape[d])
    return pad_op(x, tuple(pads), 0) if any(map(any, pads)) else x


def scale_of(name: str, norm: str | None, sizes: list[Any], forward: bool) -> float:
    """The factor that a normalisation gives a transform."""
    n = math.prod(sizes)
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'fft_{name}: Invalid normalization mode: "{norm}"; expected backward, forward or ortho')
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1.0 if (norm in (None, "backward")) == forward else 1 / n


def c2c(name: str, x: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """A complex transform."""
    x = to_float(name, x, True)
    dims, sizes = many_dims(name, x, s, dim)
    if not dims:
        return x.clone()
    return c2c_op(resized(x, dims, sizes), dims, scale_of(name, norm, sizes, forward), forward)


def r2c(name: str, x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """A transform of real numbers to a half."""
    x = to_float(name, x, False)
    if x.dtype.is_complex:
        kind = "real-valued" if name.endswith("n") else "real"
        raise RuntimeError(f"fft_{name} expects a {kind} input tensor, but got {older(x.dtype)}")
    dims, sizes = many_dims(name, x, s, dim)
    if not dims:
        raise RuntimeError(f"fft_{name} must transform at least one axis")
    y = r2c_op(resized(x, dims, sizes), dims, scale_of(name, norm, sizes, forward))
    return y if forward else conj(y)


def c2r(name: str, x: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """A transform of a half to real numbers."""
    x = to_float(name, x, True)
    given = () if s is None else several(s)
    last_given = bool(given) and given[-1] != -1
    dims, sizes = many_dims(name, x, s, dim)
    if not dims:
        raise RuntimeError(f"fft_{name} must transform at least one axis")
    n = sizes[-1] if last_given else 2 * (x.shape[dims[-1]] - 1)
    check_points(name, n)
    whole = [*sizes[:-1], n]
    x = resized(conj(x) if forward else x, dims, [*sizes[:-1], n // 2 + 1])
    return c2r_op(x, dims, scale_of(name, norm, whole, forward), n)


# The public functions --------------------------------------------------------------------------------

KINDS = {"fft": (c2c, True), "ifft": (c2c, False), "rfft": (r2c, True), "irfft": (c2r, False), "hfft": (c2r, True),
         "ihfft": (r2c, False)}  # fmt: skip
WHAT = {"fft": "transform", "ifft": "inverse transform", "rfft": "transform of real numbers, of which half is kept",
        "irfft": "inverse of rfft", "hfft": "real transform of half of a Hermitian signal", "ihfft": "inverse of hfft"}  # fmt: skip


def _publish(name: str) -> None:
    kind, forward = KINDS[name]

    def one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        if n is not None:
            check_points(name, as_int(n, f"fft_{name}", "n"))
        return kind(name, input, None if n is None else (n,), (dim,), norm, forward)

    def two(
        input: Tensor,
        s: int | Sequence[int] | None = None,
        dim: int | Sequence[int] = (-2, -1),
        norm: str | None = None,
    ) -> Tensor:
        if dim is None:
            raise TypeError(f"fft_{name}2(): argument 'dim' must be tuple of ints, not NoneType")
        return kind(f"{name}2", input, s, dim, norm, forward)

    def several(
        input: Tensor,
        s: int | Sequence[int] | None = None,
        dim: int | Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Tensor:
        return kind(f"{name}n", input, s, dim, norm, forward)

    for fn, suffix, where in (
        (one, "", "one dimension"),
        (two, "2", "two dimensions"),
        (several, "n", "several dimensions"),
    ):
        said = f"The discrete Fourier {WHAT[name]}, over {where}.  norm: backward (default), forward or ortho."
        function(ns=NS, out=True, autocast="float32")(numpy_names(called(fn, name + suffix, said)))


for _name in KINDS:
    _publish(_name)


@function(ns=NS)
@numpy_names
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Frequencies reordered so that zero is in the middle."""
    dims = range(input.ndim) if dim is None else [as_int(d, "fft_fftshift", "dim") for d in several(dim)]
    where = wrap_dims(list(dims), input.ndim)
    return input.roll([input.shape[d] // 2 for d in where], list(where))


@function(ns=NS)
@numpy_names
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift."""
    dims = range(input.ndim) if dim is None else [as_int(d, "fft_ifftshift", "dim") for d in several(dim)]
    where = wrap_dims(list(dims), input.ndim)
    return input.roll([(input.shape[d] + 1) // 2 for d in where], list(where))


def _frequencies(
    name: str,
    n: int,
    d: float,
    dtype: dtype | None,
    layout: layout | None,
    device: device | str | int | None,
    requires_grad: bool,
    pin_memory: bool,
) -> Tensor:
    """Those of `np.fft`, also of no elements and of a spacing of 0.  Raises RuntimeError for a negative n, for integers."""
    where = check_options(name, device, layout, pin_memory)
    kind = dtype or dtypes.get_default_dtype()
    n = as_int(n, f"fft_{name}", "n")  # of a tensor of one, too
    if n < 0:
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension {n}: [{n}]")
    if not kind.is_floating_point:
        kinds = {True: NotImplementedError, False: RuntimeError}
        raise kinds[kind.is_complex](f"{name} requires a floating point dtype, got {kind}")
    steps = np.arange(n // 2 + 1) if name == "rfftfreq" else np.roll(np.arange(-(n // 2), n - n // 2), n - n // 2)
    with np.errstate(all="ignore"):
        # The product of two numbers that are rounded already, as PyTorch's is: frequencies are compared, and divided again.
        values = steps.astype(kind.numpy) * (1 / np.float64(n * d)).astype(kind.numpy)
    return made(values, requires_grad, where)


@function(ns=NS, out=True)
def fftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, layout: layout | None = None,
            device: device | str | int | None = None, requires_grad: bool = False,
            pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The frequencies of fft of length n and sample spacing d: (n)"""
    return _frequencies("fftfreq", n, d, dtype, layout, device, requires_grad, pin_memory)


@function(ns=NS, out=True)
def rfftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, layout: layout | None = None,
             device: device | str | int | None = None, requires_grad: bool = False,
             pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The frequencies of rfft of length n and sample spacing d: (n // 2 + 1)"""
    return _frequencies("rfftfreq", n, d, dtype, layout, device, requires_grad, pin_memory)
