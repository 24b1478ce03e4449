"""Layer, RMS and group normalisation, local response normalisation, normalize.

What is saved: the input, and one mean and one reciprocal deviation a row, in float32 for 16-bit inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import dtypes
from rushlight.basics.dtype_words import older
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import families, shapes
from rushlight.dispatch.call import write_out
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import listed
from rushlight.dispatch.formats import kept_made, kept_order, turning
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.keeping.shown import normalized
from rushlight.dispatch.named import linalg
from rushlight.dispatch.named import named as ops
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.dispatch.rules import Making, laid_out
from rushlight.kernels.dispatch import is_half
from rushlight.kernels.sums import add_up
from rushlight.ops.elementwise.floats import is_float, require, wide, widened
from rushlight.storage import root_of
from rushlight.tensor import Tensor

F = "nn.functional"
BLOCK = 1 << 16  # elements of neighbouring channels that are computed together


def flat(weight: Array | None) -> Array | None:
    """A weight of any shape, or None, as one row."""
    return None if weight is None else weight.reshape(-1)


def last_dims(k: int) -> tuple[int, ...]:
    """The last `k` dimensions."""
    return tuple(range(-k, 0))


def as_rows(x: Array, k: int) -> Array:
    """`x` as a matrix whose columns are its last `k` dimensions."""
    lead = x.ndim - k
    return x.reshape(math.prod(x.shape[:lead]), math.prod(x.shape[lead:]))


def rows_of_gradient(g: Array, k: int) -> tuple[Array, bool]:
    """The same of a gradient, and whether that is a copy, which nobody else has: of one that is broadcast, say."""
    rows = as_rows(g, k)
    return rows, root_of(rows) is not root_of(g)


# Layer norm ---------------------------------------------------------------------------------------------------


@op(
    aten_call="norm_of_features",
    aten_more=True,
    aten_gradient="features",
    name="native_layer_norm",
    saved_as={"result1": "mean", "result2": "rstd", "normalized_shape": normalized},
    half=None,
    aux=("mean", "rstd"),
    repeatable=True,
    batch=families.by_rows,
    cheap=True,
    saver=rebuilt.keep_watched,
    again=40,
    passes=1.5,
)
def layer_norm_op(input: Array, weight: Array | None, bias: Array | None, k: int, eps: float) -> tuple[Array, ...]:
    """(input - mean) / sqrt(var + eps) * weight + bias over the last `k` dimensions.  (*, S) -> (*, S)"""
    require(is_float(input.dtype), "layer_norm", input)
    out, mean, rstd = backend.layer_norm(as_rows(input, k), flat(weight), flat(bias), eps)
    return out.reshape(input.shape), mean, rstd


@layer_norm_op.shape
def _(input: Array, k: int) -> list[shapes.Made]:
    rows = math.prod(input.shape[: input.ndim - k])
    return [shapes.packed(input), *[shapes.Made((rows,), shapes.statistics_dtype(input.dtype))] * 2]


@layer_norm_op.work
def _(input: Array) -> int:
    return laid_out(input)


def _layer_norm_raw(
    g: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    rstd: Array,
    k: int,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    # The bias is asked for so that it is saved: the result may have to be computed again (see `rebuilt`).
    if input is None:
        return None, None, bias_gradient(g, tuple(range(g.ndim - k)))
    rows, over = rows_of_gradient(g, k)
    gx, gw, gb = backend.layer_norm_backward(rows, as_rows(input, k), mean, rstd, flat(weight), needs, over)
    shape = input.shape[input.ndim - k :]
    return tuple(None if x is None else x.reshape(s) for x, s in ((gx, input.shape), (gw, shape), (gb, shape)))


def _made_of_rows(
    input: Array | None, g: Array, k: int, needs: tuple[bool, ...], make: Making, last: int
) -> tuple[Any, ...]:
    """The gradients of a norm of rows: that of the input is written over the copy of a gradient that does not lie in rows.

    Those of weights are summed in parts.
    """
    if input is None:
        return (*(None,) * last, make.gradient(last))
    held = [make.array(x.shape, x.dtype) for x, need in ((input, True), (g, not needs[0])) if need and laid_out(x)]
    made = tuple([make.gradient(i) if need else None for i, need in enumerate(needs)])
    if any(needs[1:]):
        columns = math.prod(input.shape[input.ndim - k :])
        parts = min(max(input.size // 32768, 1), 64)
        make.work(2 * parts * columns * shapes.statistics_dtype(input.dtype).itemsize)
    del held
    return made


def bias_gradient(g: Any, dims: tuple[int, ...]) -> Any:
    """The gradient of a bias alone, for which nothing is saved: an array summed over `dims`."""
    return add_up(g, dims, False, np.float32 if g.dtype.itemsize == 2 else None)


def standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """(x - mean) / sqrt(var + eps) over `dims`, and the second factor."""
    centered = x - ops.mean(x, dims, True)
    rstd = ops.rsqrt(ops.mean(centered * centered, dims, True) + eps)
    return centered * rstd, rstd


def _layer_norm_made(g: Array, input: Array | None, k: int, needs: tuple[bool, ...], make: Making) -> tuple[Any, ...]:
    return _made_of_rows(input, g, k, needs, make, 2)


@layer_norm_op.grad("input", "weight", "bias", raw=_layer_norm_raw, shapes=_layer_norm_made,
                    uses={"input": "input weight bias mean rstd", "weight": "input weight bias mean rstd",
                          "bias": ""})  # fmt: skip
def _(g: Tensor, input: Tensor, weight: Tensor | None, k: int, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if input is None:
        return None, None, g
    g, input, weight = widened(g, input, weight)
    dims = last_dims(k)
    hat, rstd = standardized(input, dims, eps)
    t = g if weight is None else g * weight
    gx = rstd * (t - ops.mean(t, dims, True) - hat * ops.mean(t * hat, dims, True)) if needs[0] else None
    return gx, g * hat if needs[1] else None, g


def check_precision(input: Tensor, *parameters: Tensor | None) -> None:
    """Raise RuntimeError for parameters of another precision than the input's; beside one of 16 bits they may be float32."""
    kind, dtype = input._array.dtype, input.dtype
    for x in parameters:
        if x is None or x._array.dtype is kind:
            continue
        if x.dtype is not dtype and (dtype.itemsize != 2 or x.dtype is not dtypes.float32):
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {older(dtype)} (or Float beside 16 "
                               f"bits), got {older(x.dtype)}")  # fmt: skip


def check_normalized(name: str, input: Tensor, shape: Any, *parameters: Tensor | None) -> int:
    """The number of dimensions normalised over.  Raises RuntimeError where shapes do not fit."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(input)}")
    first = parameters[0] if parameters else None
    if shape.__class__ is not tuple or first is None or first._array.shape != shape:
        shape = listed(shape, name, "normalized_shape")
    k, have = len(shape), input._array.shape
    if not k:
        raise RuntimeError(f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
                           "one element, but got normalized_shape = []")  # fmt: skip
    for argument, x in zip(("weight", "bias"), parameters, strict=False):
        if x is not None and x._array.shape != shape:
            raise RuntimeError(f"{name}: Expected {argument} to be of same shape as normalized_shape, but got "
                               f"{argument} of shape {list(x.shape)} and normalized_shape = {list(shape)}")  # fmt: skip
    if len(have) < k or have[len(have) - k :] != shape:
        wanted = ", ".join(["*", *map(str, shape)])
        raise RuntimeError(f"{name}: Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but "
                           f"got input of size{list(have)}")  # fmt: skip
    return k


@function(ns=F)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the dimensions of normalized_shape S.  (*, S) -> (*, S)

    weight, bias: S or None. Raises RuntimeError where shapes do not fit.
    Source: Ba, Kiros and Hinton, Layer Normalization (2016).

    >>> import rushlight as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    k = check_normalized("layer_norm", input, normalized_shape, weight, bias)
    check_precision(input, weight, bias)
    return layer_norm_op(input, weight, bias, k, eps)


def torch_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
                     bias: Tensor | None = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:  # fmt: skip
    """As torch.nn.functional.layer_norm."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


known_as(torch_layer_norm, "layer_norm")
NAMESPACES[""]["layer_norm"] = torch_layer_norm


@function()
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """(layer_norm, mean, 1 / sqrt(var + eps)); gradients flow through the first alone."""
    k = check_normalized("native_layer_norm", input, normalized_shape, weight, bias)
    out = layer_norm_op(input, weight, bias, k, eps)
    return out, *statistics(input.detach(), last_dims(k), eps, weight, bias)


def statistics(x: Tensor, dims: tuple[int, ...], eps: float, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
    """The mean and 1 / sqrt(var + eps) over `dims`, which stay as 1: of 16 bits found in float32, which holds their squares.

    They stay so beside parameters of float32.
    """
    own = x.dtype
    (x,) = widened(x)
    mean = ops.mean(x, dims, True)
    rstd = ops.rsqrt(ops.mean((x - mean) ** 2, dims, True) + eps)
    stay = x.dtype is own or any(p is not None and p.dtype is x.dtype for p in parameters)
    return (mean, rstd) if stay else (mean.to(own), rstd.to(own))


# RMS norm -----------------------------------------------------------------------------------------------------


@op(
    name="fused_rms_norm",
    half=None,
    aux=("rstd",),
    repeatable=True,
    batch=families.by_rows,
    cheap=True,
    saver=rebuilt.keep_watched,
    again=40,
)
def rms_norm_op(input: Array, weight: Array | None, k: int, eps: float) -> tuple[Array, ...]:
    """input / sqrt(mean(input^2) + eps) * weight over the last `k` dimensions.  (*, S) -> (*, S)"""
    require(is_float(input.dtype), "rms_norm", input)
    out, rstd = backend.rms_norm(as_rows(input, k), flat(weight), eps)
    return out.reshape(input.shape), rstd


@rms_norm_op.shape
def _(input: Array, k: int) -> list[shapes.Made]:
    rows = math.prod(input.shape[: input.ndim - k])
    return [shapes.packed(input), shapes.Made((rows,), shapes.statistics_dtype(input.dtype))]


@rms_norm_op.work
def _(input: Array) -> int:
    return laid_out(input)


def _rms_norm_raw(
    g: Array, input: Array, weight: Array | None, rstd: Array, k: int, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    rows, over = rows_of_gradient(g, k)
    gx, gw = backend.rms_norm_backward(rows, as_rows(input, k), rstd, flat(weight), needs, over)
    shape = input.shape[input.ndim - k :]
    return (None if gx is None else gx.reshape(input.shape)), (None if gw is None else gw.reshape(shape))


def _rms_norm_made(g: Array, input: Array, k: int, needs: tuple[bool, ...], make: Making) -> tuple[Any, ...]:
    return _made_of_rows(input, g, k, needs, make, 1)


@rms_norm_op.grad("input", "weight", raw=_rms_norm_raw, shapes=_rms_norm_made,
                  uses={"input": "input weight rstd", "weight": "input rstd"})  # fmt: skip
def _(g: Tensor, input: Tensor, weight: Tensor | None, k: int, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    g, input, weight = widened(g, input, weight)
    dims = last_dims(k)
    rstd = ops.rsqrt(ops.mean(input * input, dims, True) + eps)
    hat = input * rstd
    t = g if weight is None else g * weight
    gx = rstd * (t - hat * ops.mean(t * hat, dims, True)) if needs[0] else None
    return gx, g * hat if needs[1] else None


@function(ns=F)
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """input / sqrt(mean(input^2) + eps) * weight over the last dimensions.  (*, S) -> (*, S), S = normalized_shape

    eps: by default that of the dtype in which it is computed (float32 for 16-bit inputs).
    Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019).
    """
    k = check_normalized("rms_norm", input, normalized_shape, weight)
    dtype = input.dtype
    if eps is None:
        require(dtype.category >= dtypes.FLOAT, "rms_norm", input)
        eps = float(np.finfo(np.float32 if dtype.itemsize == 2 else dtype.numpy).eps)
    if dtype.is_complex:
        result = input * ops.rsqrt(ops.mean(input * input, last_dims(k), True) + eps)
        return result if weight is None else result * weight
    return rms_norm_op(input, weight, k, eps)


NAMESPACES[""]["rms_norm"] = rms_norm


# Group norm ---------------------------------------------------------------------------------------------------


@op(
    aten_call="norm_of_groups",
    aten_more=True,
    aten_gradient="groups",
    name="native_group_norm",
    saved_as={"result1": "mean", "result2": "rstd", "group": "groups"},
    half=None,
    aux=("mean", "rstd"),
    repeatable=True,
    batch=families.by_groups,
    cheap=True,
    saver=rebuilt.keep_watched,
    again=60,
)
def group_norm_op(input: Array, weight: Array | None, bias: Array | None, groups: int, eps: float) -> tuple[Array, ...]:
    """Normalisation over groups of channels.  (N, C, *), (C,), (C,) -> (N, C, *)"""
    require(is_float(input.dtype), "group_norm", input)
    made, *statistics = backend.group_norm(input, groups, weight, bias, eps)
    return (made if input.flags.c_contiguous else kept_order(made, input)), *statistics


@group_norm_op.shape
def _(input: Array, groups: int) -> list[shapes.Made]:
    statistics = [shapes.Made((input.shape[0], groups), shapes.statistics_dtype(input.dtype))] * 2
    return [kept_made(shapes.packed(input), input), *statistics]


@group_norm_op.work
def _(input: Array) -> int:
    return max(laid_out(input), turning(shapes.packed(input), input))


def made_of_planes(g: Array, input: Array | None, needs: tuple[bool, ...], make: Making) -> tuple[Any, ...]:
    """The gradients of a norm of channels, whose kernel takes its gradient and input laid out."""
    held = [make.array(x.shape, x.dtype) for x in (g, input) if input is not None and x is not None and laid_out(x)]
    made = tuple([make.gradient(i) if need else None for i, need in enumerate(needs)])
    del held
    return made


def _group_norm_raw(
    g: Array, input: Array, weight: Array | None, bias: Array | None, mean: Array, rstd: Array, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    if input is None:
        return None, None, bias_gradient(g, (0, *range(2, g.ndim)))
    if not input.size:
        return zero_gradients(input, weight)
    return backend.group_norm_backward(g, input, mean, rstd, weight, needs)


def zero_gradients(x: Array, weight: Any) -> tuple[Any, Any, Any]:
    """The gradients of an empty batch by input, weight and bias."""
    features = np.zeros(x.shape[1], x.dtype if weight is None else weight.dtype)
    return np.zeros_like(x), features, features.copy()


def by_feature(weight: Tensor, ndim: int) -> Tensor:
    """(C,) so that it broadcasts with (N, C, *)."""
    return weight.reshape(1, -1, *(1,) * (ndim - 2))


@group_norm_op.grad("input", "weight", "bias", raw=_group_norm_raw, shapes=made_of_planes,
                    uses={"input": "input weight bias mean rstd", "weight": "input mean rstd", "bias": ""})  # fmt: skip
def _(
    g: Tensor, input: Tensor, weight: Tensor | None, groups: int, eps: float, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    if input is None:
        return None, None, ops.sum(widened(g)[0], (0, *range(2, g.ndim)))
    g, input, weight = widened(g, input, weight)
    shape = tuple(input.shape)
    grouped, dims = in_groups(shape, groups), (0, *range(2, len(shape)))
    hat, rstd = standardized(input.reshape(grouped), (2,), eps)
    t = (g if weight is None else g * by_feature(weight, len(shape))).reshape(grouped)
    gx = rstd * (t - ops.mean(t, (2,), True) - hat * ops.mean(t * hat, (2,), True)) if needs[0] else None
    gw = ops.sum(g * hat.reshape(shape), dims) if needs[1] else None
    return None if gx is None else gx.reshape(shape), gw, ops.sum(g, dims) if needs[2] else None


def in_groups(shape: tuple[int, ...], groups: int) -> tuple[int, int, int]:
    """(N, C, *) with the channels of each group and their positions together."""
    return shape[0], groups, shape[1] // max(groups, 1) * math.prod(shape[2:])


def check_group(input: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None) -> None:
    """Raise RuntimeError where shapes do not fit the groups."""
    shape = list(input.shape)
    if len(shape) < 2:
        raise RuntimeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if groups <= 0:
        raise RuntimeError(f"group_norm: Expected num groups to be greater than 0, got {groups}")
    if shape[1] % groups:
        raise RuntimeError("group_norm: Expected number of channels in input to be divisible by num_groups, but got "
                           f"input of shape {shape} and num_groups={groups}")  # fmt: skip
    for argument, x in (("weight", weight), ("bias", bias)):
        if x is not None and list(x.shape) != shape[1:2]:
            raise RuntimeError(f"group_norm: Expected {argument} to be a vector of size equal to the number of "
                               f"channels in input, but got {argument} of shape {list(x.shape)} and input of shape "
                               f"{shape}")  # fmt: skip
    check_precision(input, weight, bias)


def verify_batch(shape: list[int], count: int) -> None:
    """Raise ValueError where there is one value only to take statistics of."""
    if count == 1:
        raise explained(
            ValueError(f"Expected more than 1 value per channel when training, got input size torch.Size({shape})"),
            "batch-norm-of-one",
        )


@function(ns=F)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalisation over each of `num_groups` groups of channels.  (N, C, *), weight, bias: (C,) -> (N, C, *)

    Raises RuntimeError unless num_groups divides C.  Source: Wu and He, Group Normalization (2018).
    """
    check_group(input, num_groups, weight, bias)
    shape = list(input.shape)
    verify_batch(shape, shape[0] * shape[1] // num_groups * math.prod(shape[2:]))
    return group_norm_op(input, weight, bias, num_groups, eps)


def torch_group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
                     eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """As torch.nn.functional.group_norm."""
    check_group(input, num_groups, weight, bias)
    return group_norm_op(input, weight, bias, num_groups, eps)


known_as(torch_group_norm, "group_norm")
NAMESPACES[""]["group_norm"] = torch_group_norm


@function()
def native_group_norm(
    input: Tensor, weight: Tensor, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, ...]:
    """(group_norm, mean (N, group), 1 / sqrt(var + eps) (N, group)) of `input` (N, C, *) with HxW positions."""
    check_group(input, group, weight, bias)
    rows = input.reshape(N, group, C // group * HxW)
    mean, rstd = statistics(rows, (2,), eps, weight, bias)
    return group_norm_op(input, weight, bias, group, eps), mean.squeeze(2), rstd.squeeze(2)


# Normalisation by norms and by neighbouring channels --------------------------------------------------------------


@function(ns=F)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(norm(input), eps), the norm of order `p` along `dim`.  (*) -> (*)"""
    norm = linalg.vector_norm(input, p, dim, True)
    result = input / ops.clamp_min(norm, eps)
    return result if out is None else write_out("normalize", out, result)


@op(linear=True, shape=shapes.same, batch=families.images)
def window_sum(input: Array, before: int, after: int) -> Array:
    """Sums over neighbouring channels c - before to c + after.  (N, C, *) -> (N, C, *)"""
    out, channels = input.copy(), input.shape[1]
    for shift in range(-before, after + 1):
        if shift and abs(shift) < channels:
            lower, upper = slice(None, channels - abs(shift)), slice(abs(shift), None)
            to, of = (lower, upper) if shift > 0 else (upper, lower)
            out[:, to] += input[:, of]
    return out


window_sum.grad("input")(lambda g, before, after: window_sum(g, after, before))


@op(name="local_response_norm", promote="float", half=None, shape=shapes.same, batch=families.images)
def local_response_op(input: Array, size: int, alpha: float, beta: float, k: float) -> Array:
    """input / (k + alpha * mean of squares over `size` channels)^beta.  (N, C, *) -> (N, C, *)"""
    return by_places(lambda x: _responded(widened(x)[0], size, alpha, beta, k), input.dtype, input)


def _responded(x: Array, size: int, alpha: float, beta: float, k: float) -> Any:
    return x * _response(x, size, alpha, k) ** -beta


def by_places(fn: Callable[..., Any], dtype: Any, *arrays: Array) -> Array:
    """fn(*arrays) of arrays (N, C, *), some of their places at a time."""
    shape, size = arrays[0].shape, arrays[0].size
    out = np.empty((shape[0], shape[1], size // max(shape[0] * shape[1], 1)), dtype)
    flat, step = [x.reshape(out.shape) for x in arrays], max(1, BLOCK // max(shape[1], 1))
    for n in range(shape[0] if size else 0):
        for start in range(0, out.shape[2], step):
            at = slice(n, n + 1), slice(None), slice(start, start + step)
            out[at] = fn(*[x[at] for x in flat])
    return out.reshape(shape)


def _response(x: Array | Tensor, size: int, alpha: float, k: float) -> Array | Tensor:
    return window_sum(x * x, size // 2, (size - 1) // 2) * (alpha / size) + k


def _local_slopes(g: Array | Tensor, input: Array | Tensor, size: int, alpha: float, beta: float, k: float) -> object:
    g, input = widened(g, input)
    base = _response(input, size, alpha, k)
    spread = window_sum(g * input * base ** (-beta - 1), (size - 1) // 2, size // 2)
    return g * base**-beta - input * spread * (2 * alpha * beta / size)


@local_response_op.work
def _(input: Array) -> int:
    return (3 if is_half(input.dtype) else 2) * _block_of(input)


def _local_bytes(input: Array, make: Making) -> Array:
    made = make.gradient(0)
    make.work((7 if is_half(input.dtype) else 5) * _block_of(input))
    return made


def _block_of(input: Array) -> int:
    """The bytes of what `by_places` computes with together."""
    n, channels = input.shape[:2]
    places = input.size // max(n * channels, 1)
    return min(places, max(1, BLOCK // max(channels, 1))) * channels * wide(input.dtype).itemsize


local_response_op.grad(
    "input",
    shapes=_local_bytes,
    raw=lambda g, input, size, alpha, beta, k: by_places(
        lambda g, x: _local_slopes(g, x, size, alpha, beta, k), input.dtype, g, input
    ),
)(_local_slopes)


@function(ns=F)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of squares over `size` neighbouring channels)^beta.  (N, C, *) -> (N, C, *)

    Raises ValueError below 3 dimensions.  Source: Krizhevsky, Sutskever and Hinton, ImageNet Classification (2012).
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: Expected 3D or higher dimensionality input (got {input.ndim} "
                         "dimensions)")  # fmt: skip
    if not input._array.size:
        return input
    if size < 1:
        raise RuntimeError(f"local_response_norm: kernel size should be greater than zero, but got size={size}")
    return local_response_op(input, size, alpha, beta, k)
