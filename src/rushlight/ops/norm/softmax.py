"""Softmax, its logarithm and relatives.  They save their result alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller, dtypes
from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes, special
from rushlight.dispatch import call, families, randomness, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import dim_or_axis, wrap_dim
from rushlight.dispatch.meta import beside
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.options import blank
from rushlight.dispatch.registry import NAMESPACES, function, op
from rushlight.generator import default_generator
from rushlight.ops.elementwise.floats import is_float, require
from rushlight.tensor import Tensor

F = "nn.functional"
BLOCK = 1 << 16  # numbers that are drawn at once


@op(
    half=None,
    shape=shapes.dense,
    repeatable=True,
    aten=("_softmax(input, dim, ''=False)",),
    aten_gradient="_softmax_backward_data(g, out, dim, input_dtype)",
    batch=families.shifted,
    passes=2.0,
)
def softmax_op(input: Array, dim: int) -> Array:
    """e^input / sum(e^input) along `dim`.  (*) -> (*)"""
    require(is_float(input.dtype), "softmax", input)
    return backend.softmax(input, dim)


@softmax_op.grad("input", raw=lambda g, out, dim: backend.softmax_backward(g, out, dim))
def _(g: Tensor, out: Tensor, dim: int) -> Tensor:
    t = g * out
    return t - out * ops.sum(t, dim, True)


softmax_op.into(lambda x, dim: backend.softmax(x, dim, out=x))


@op(
    half=None,
    shape=shapes.dense,
    repeatable=True,
    aten=("_log_softmax(input, dim, ''=False)",),
    aten_gradient="_log_softmax_backward_data(g, out, dim, input_dtype)",
    batch=families.shifted,
    passes=2.0,
)
def log_softmax_op(input: Array, dim: int) -> Array:
    """input - log(sum(e^input)) along `dim`.  (*) -> (*)"""
    require(is_float(input.dtype), "log_softmax", input)
    return backend.log_softmax(input, dim)


@log_softmax_op.grad("input", raw=lambda g, out, dim: backend.log_softmax_backward(g, out, dim))
def _(g: Tensor, out: Tensor, dim: int) -> Tensor:
    return g - ops.exp(out) * ops.sum(g, dim, True)


log_softmax_op.into(lambda x, dim: backend.log_softmax(x, dim, out=x))


def applied(fn: Any, name: str, input: Tensor, dim: int | None, dtype: dtype | None, axis: int | None = None) -> Tensor:
    """`fn` along `dim` of `input`, converted to `dtype` first if that is given."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(input)}")
    if dtype is not None:
        if not isinstance(dtype, dtypes.dtype):
            raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {kind_of(dtype)}")
    along = wrap_dim(dim_or_axis(name, dim, axis) if dim is None else dim, input._array.ndim)
    wide = input if dtype is None else input.to(dtype)
    if wide is not input and not special.count and wide._array.dtype.char in "fd":
        return call.apply_inplace(fn.op, (wide,), (along,))  # nobody else has the copy, in whose memory the result goes
    return fn(wide, along)


@function(method=True, out="same")
def softmax(input: Tensor, dim: int | None = None, dtype: dtype | None = None, *, axis: int | None = None) -> Tensor:
    """e^input / sum(e^input) along `dim`, of `input` converted to `dtype` if that is given.  (*) -> (*)

    Rows of -inf alone become NaN.  Raises IndexError for a `dim` that is out of range.

    >>> import rushlight as torch
    >>> torch.softmax(torch.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return applied(softmax_op, "softmax", input, dim, dtype, axis)


@function(method=True, out="same")
def log_softmax(
    input: Tensor, dim: int | None = None, dtype: dtype | None = None, *, axis: int | None = None
) -> Tensor:
    """The logarithm of `softmax`, without its loss of digits.  (*) -> (*)"""
    return applied(log_softmax_op, "log_softmax", input, dim, dtype, axis)


NAMESPACES.setdefault("special", {}).update(softmax=softmax, log_softmax=log_softmax)


def implied_dim(name: str, dim: int | None, ndim: int) -> int:
    """`dim`, or with a warning the one that was implied before the argument existed."""
    if dim is not None:
        return dim
    caller.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
                "argument.")  # fmt: skip
    return 0 if ndim in (0, 1, 3) else 1


@function(ns=F, name="softmax")
def functional_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """As torch.softmax; a `dim` of None is deprecated and means 0 for 0, 1 and 3 dimensions, else 1.  (*) -> (*)

    _stacklevel has no effect: the warning names the line of the caller outside this package.
    """
    return applied(softmax_op, "softmax", input, implied_dim("softmax", dim, input.ndim), dtype)


@function(ns=F, name="log_softmax")
def functional_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
                           dtype: dtype | None = None) -> Tensor:  # fmt: skip
    """The logarithm of softmax along `dim`, of `input` converted to `dtype` if that is given.  (*) -> (*)"""
    dim = implied_dim("log_softmax", dim, input.ndim)
    return applied(log_softmax_op, "log_softmax", input, dim, dtype)


@function(ns=F)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """softmax(-input).  (*) -> (*)"""
    return applied(softmax_op, "softmin", -input, implied_dim("softmin", dim, input.ndim), dtype)


@function(ns=F)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution: differentiable draws of categories.  (*) -> (*)

    tau: temperature; hard: one-hot values with the gradient of the soft ones; eps is ignored.
    Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax (2017).
    """
    if eps != 1e-10:
        caller.warn("`eps` parameter is deprecated and has no effect.")
    array = logits._array
    if not logits.dtype.is_floating_point:
        raise RuntimeError(
            f"gumbel_softmax: expected logits of a floating-point dtype, got {logits.dtype}: convert them"
        )
    noise = randomness.fresh(lambda shape: _gumbel_noise(shape, array.dtype), array.shape)
    soft = softmax((logits + beside(noise, logits)) / tau, dim)
    if not hard:
        return soft
    at = ops.argmax(soft.detach(), dim, True)
    return ops.scatter(ops.zeros_like(soft.detach()), dim, at, 1.0) - soft.detach() + soft


def _gumbel_noise(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Minus the logarithms of draws from the exponential distribution, which are drawn in float64, block by block."""
    noise = blank(np.empty, shape, dtype)
    if modes.levels and any(level.dry for level in modes.levels):
        return noise
    flat = noise.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        drawn = default_generator.numpy.standard_exponential(part.size)
        part[...] = np.negative(np.log(drawn, out=drawn), out=drawn)
    return noise
