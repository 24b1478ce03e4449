"""Convolutions: three bilinear operators, each the adjoint of the others, so that all orders are closed.

Legend: N images, C input channels, O output channels, S input sizes, L output sizes, K kernel sizes, G groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.dtypes import complex32
from rushlight.basics.errors import explained
from rushlight.basics.naming import called
from rushlight.basics.state import modes
from rushlight.dispatch import costs, families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import sizes
from rushlight.dispatch.formats import kept_made, kept_order, turning
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.keeping.shown import always, bias_sizes, no_padding
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import function, op
from rushlight.kernels.convolution import bytes_of_copies, working_bytes
from rushlight.kernels.reference.windows import out_sizes
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import reshape_op, slice_op, sum_to
from rushlight.tensor import Tensor

COMPLEX_HALF = (complex32, complex32.numpy)


def _channel_sum(g: Array | Tensor) -> Array | Tensor:
    if g.dtype in COMPLEX_HALF:  # of which sums are refused, and gradients of what was broadcast are not
        return reshape_op(sum_to(g, (1, g.shape[1], *(1 for _ in g.shape[2:]))), (g.shape[1],))
    return sum_op(g, tuple(i for i in range(len(g.shape)) if i != 1), False)


@op(
    saved_as={"transposed": always(False), "output_padding": no_padding, "bias_sym_sizes_opt": bias_sizes},
    autocast="lower",
    factors=(0, 1),
    added=2,
    counted=costs.Counted("convolution", "convolution_backward"),
    half=None,
    aten=("convolution",),
    aten_call="windowed",
    aten_gradient="windowed",
    batch=families.windowed,
    heavy=True,
    complex_half="widens",
    saver=rebuilt.keep_inputs,
    added_at=1,
)
def convolution_op(input: Array, weight: Array, bias: Array | None, stride: tuple[int, ...], padding: tuple[int, ...],
            dilation: tuple[int, ...], groups: int) -> Array:  # fmt: skip
    """Cross-correlation.  input: (N, C, *S), weight: (O, C/G, *K), bias: (O) -> (N, O, *L)"""
    y = backend.conv(input, weight, stride, padding, dilation, groups, bias)
    return kept_order(y, input, weight)


def windows(
    input: Array, weight: Array, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[int, ...]:
    """How often the kernel fits, in each dimension of space."""
    return out_sizes(tuple(input.shape[2:]), (tuple(weight.shape[2:]), tuple(stride), tuple(padding), tuple(dilation)))


@convolution_op.shape
def _(
    input: Array, weight: Array, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> list[shapes.Made]:
    return [kept_made(_convolved(input, weight, stride, padding, dilation), input, weight)]


def _convolved(
    input: Array, weight: Array, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> shapes.Made:
    """The result as it is made, before it is turned."""
    out = windows(input, weight, stride, padding, dilation)
    return shapes.Made((input.shape[0], weight.shape[0], *out), input.dtype)


@convolution_op.costs
def _(input: Array, weight: Array, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> int:
    places = windows(input, weight, stride, padding, dilation)
    return int(2 * input.shape[0] * math.prod(places) * math.prod(weight.shape))


def _room(operands: tuple[Array, Array], adjoint: str, x: Any, w: Any, out: Any, *geometry: Any) -> int:
    """What a kernel takes beside its result, of operands as they lie."""
    copies = bytes_of_copies(operands, adjoint, x, w, out, *geometry)
    return copies + working_bytes(adjoint, x, w, out, operands[0].dtype, *geometry)


@convolution_op.work
def _(
    input: Array,
    weight: Array,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> int:
    out = windows(input, weight, stride, padding, dilation)
    room = _room((input, weight), "", input.shape, weight.shape, out, stride, padding, dilation, groups)
    made = _convolved(input, weight, stride, padding, dilation)
    return max(room, turning(made, input, weight))


# The weight first, for it is what may need its input computed again, which is then gone before the other is made.
convolution_op.grad("weight")(
    lambda g, input, weight_shape, stride, padding, dilation, groups: conv_weight_op(
        g, conj(input), weight_shape, stride, padding, dilation, groups
    )
)
convolution_op.grad("input")(
    lambda g, input_shape, weight, stride, padding, dilation, groups: conv_input_op(
        g, conj(weight), input_shape, stride, padding, dilation, groups
    )
)
convolution_op.grad("bias")(lambda g: _channel_sum(g))


@op(
    half=None,
    aten=("convolution",),
    aten_call="transposed",
    factors=(0, 1),
    counted=costs.Counted("convolution", "convolution_backward"),
    batch=families.input_gradient,
    heavy=True,
    complex_half="widens",
    saver=rebuilt.keep_inputs,
)
def conv_input_op(input: Array, weight: Array, shape: tuple[int, ...], stride: tuple[int, ...],
                  padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> Array:  # fmt: skip
    """The adjoint of convolution in its input.  input: (N, O, *L), weight: (O, C/G, *K) -> shape (N, C, *S)"""
    y = backend.conv_input(input, weight, shape, stride, padding, dilation, groups)
    return kept_order(y, input, weight)


@conv_input_op.shape
def _(input: Array, weight: Array, shape: tuple[int, ...]) -> list[shapes.Made]:
    return [kept_made(shapes.Made(tuple(shape), input.dtype), input, weight)]


@conv_input_op.costs
def _(input: Array, weight: Array) -> int:
    return int(2 * input.shape[0] * math.prod(input.shape[2:]) * math.prod(weight.shape))


@conv_input_op.work
def _(
    input: Array,
    weight: Array,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> int:
    out = input.shape[2:]
    room = _room((input, weight), "input", shape, weight.shape, out, stride, padding, dilation, groups)
    made = shapes.Made(tuple(shape), input.dtype)
    return max(room, turning(made, input, weight))


def conv_to(
    shape: tuple[int, ...],
    x: Array | Tensor,
    w: Array | Tensor,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Array | Tensor:
    """The convolution of x and w, cut to `shape`."""
    y = convolution_op(x, w, None, stride, padding, dilation, groups)
    # An output padding as large as the stride makes room for windows that the operand never had.
    return y if tuple(y.shape) == tuple(shape) else slice_op(y, tuple(slice(n) for n in shape))


# The weight first, as of the convolution.
conv_input_op.grad("weight")(
    lambda g, input, weight_shape, stride, padding, dilation, groups: conv_weight_op(
        conj(input), g, weight_shape, stride, padding, dilation, groups
    )
)
conv_input_op.grad("input")(
    lambda g, input_shape, weight, stride, padding, dilation, groups: conv_to(
        input_shape, g, conj(weight), stride, padding, dilation, groups
    )
)


@op(factors=(0, 1), half=None, complex_half="widens", shape=shapes.shaped, batch=families.weight_gradient)
def conv_weight_op(input: Array, other: Array, shape: tuple[int, ...], stride: tuple[int, ...],
                   padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> Array:  # fmt: skip
    """The adjoint of convolution in its weight.  input: (N, O, *L), other: (N, C, *S) -> shape (O, C/G, *K)"""
    return backend.conv_weight(input, other, shape, stride, padding, dilation, groups)


@conv_weight_op.work
def _(
    input: Array,
    other: Array,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> int:
    out = input.shape[2:]
    return _room((input, other), "weight", other.shape, shape, out, stride, padding, dilation, groups)


conv_weight_op.grad("input")(
    lambda g, input_shape, other, stride, padding, dilation, groups: conv_to(
        input_shape, conj(other), g, stride, padding, dilation, groups
    )
)
conv_weight_op.grad("other")(
    lambda g, input, other_shape, stride, padding, dilation, groups: conv_input_op(
        conj(input), g, other_shape, stride, padding, dilation, groups
    )
)


# The public functions --------------------------------------------------------------------------------


def spread(name: str, what: str, value: Any, n: int) -> tuple[int, ...]:
    """An int or a sequence of n (or 1) ints as a tuple of n."""
    values = sizes((value,), name, what)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise RuntimeError(f"{name}: expected {what} to be a single integer value or a list of {n} values to match the "
                           f"convolution dimensions, but got {what}={list(values)}")  # fmt: skip
    return values


def check_dimensions(name: str, x: tuple[int, ...], w: tuple[int, ...], n: int) -> None:
    """Raise RuntimeError for shapes of inputs and weights that are none of a convolution in n dimensions."""
    if len(w) < 3:
        raise RuntimeError(f"{name}: weight should have at least three dimensions, got {list(w)}")
    if 0 in w[2:]:
        raise RuntimeError(f"{name}: kernel size should be greater than zero, but got weight of size {list(w)}")
    if len(w) != n + 2 and len(x) in (n + 1, n + 2):
        raise RuntimeError(
            f"{name}: Expected {len(w)}-dimensional input for {len(w)}-dimensional weight{list(w)}, but got "
            f"{len(x)}-dimensional input of size {list(x)} instead: a weight of {n + 2} dimensions is wanted"
        )
    if len(x) not in (n + 1, n + 2):
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
                           f"{list(x)}, and {n + 2}D weight, got weight of size: {list(w)}")  # fmt: skip


def check_shapes(
    name: str,
    n: int,
    x: tuple[int, ...],
    w: tuple[int, ...],
    bias: tuple[int, ...] | None,
    groups: int,
    transposed: bool,
) -> None:
    """Raise RuntimeError for shapes that do not fit together."""
    channels = x[-n - 1]
    if groups <= 0:
        raise RuntimeError(f"{name}: non-positive groups is not supported, got groups={groups}")
    if w[0] % groups or w[0] < groups:
        raise RuntimeError(f"{name}: Given groups={groups}, expected weight to be at least {groups} at dimension 0 and "
                           f"to be divisible by {groups} at dimension 0, but got weight of size {list(w)} instead")  # fmt: skip
    wanted, given = (w[0], "transposed=1") if transposed else (w[1] * groups, f"groups={groups}")
    if channels != wanted:
        raise explained(RuntimeError(f"{name}: Given {given}, weight of size {list(w)}, expected input{list(x)} to have "
                           f"{wanted} channels, but got {channels} channels instead"), "channels-of-a-convolution")  # fmt: skip
    outputs = w[1] * groups if transposed else w[0]
    if bias is not None and bias != (outputs,):
        raise RuntimeError(f"{name}: Given weight of size {list(w)}, expected bias to be 1-dimensional with {outputs} "
                           f"elements, but got bias of size {list(bias)} instead")  # fmt: skip


def check_dtypes(name: str, input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """Raise RuntimeError for two dtypes."""
    first = held(input).dtype
    if first is held(weight).dtype and (bias is None or first is held(bias).dtype):
        return
    dtypes = {t.dtype for t in (input, weight, bias) if t is not None}
    if len(dtypes) > 1:
        words = f"expected scalar type {older(input.dtype)} but found {older(weight.dtype)}"
        if bias is not None and bias.dtype is not input.dtype and (weight.dtype is input.dtype or not transposed):
            words = f"Input type ({in_c(input.dtype)}) and bias type ({in_c(bias.dtype)}) should be the same"
        raise explained(RuntimeError(f"{name}: {words}"), "two-dtypes")


def check_numbers(name: str, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> None:
    """Raise RuntimeError for strides and dilations below 1 and negative paddings."""
    if min(stride) <= 0:
        raise RuntimeError(f"{name}: non-positive stride is not supported, got {stride}")
    if min(dilation) <= 0:
        raise RuntimeError(f"{name}: dilation should be greater than zero, got {dilation}")
    if min(padding) < 0:
        raise RuntimeError(f"{name}: negative padding is not supported, got {padding}")


def batched(input: Tensor, n: int) -> tuple[Any, bool]:
    """The input with a batch dimension, and whether it was added."""
    if held(input).ndim == n + 2:
        return input, False
    return reshape_op(input, (1, *input.shape)), True


def convolve(name: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: int | Sequence[int],
             padding: int | Sequence[int] | str, dilation: int | Sequence[int], groups: int) -> Tensor:  # fmt: skip
    """Convolution in n dimensions, arguments checked."""
    if modes.autocast is not None:
        input, weight, bias = modes.autocast("lower", [input, weight, bias])
    if isinstance(padding, str):
        input, padding = named_padding(name, n, input, weight, padding, stride, dilation)
    stride, padding, dilation = geometry(
        name, n, held(input).shape, held(weight).shape, None if bias is None else held(bias).shape,
        hashed(stride), hashed(padding), hashed(dilation), groups)  # fmt: skip
    check_dtypes(name, input, weight, bias, False)
    input, added = batched(input, n)
    y = convolution_op(input, weight, bias, stride, padding, dilation, groups)
    return reshape_op(y, y.shape[1:]) if added else y


def hashed(value: object) -> Any:
    """Numbers as a geometry is known by: a list as a tuple, a tensor of one number as that."""
    if value.__class__ is int or value.__class__ is tuple:
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    return tuple(value) if isinstance(value, list) else value


@lru_cache(1 << 10, typed=True)
def geometry(
    name: str, n: int, x: tuple[int, ...], w: tuple[int, ...], bias: tuple[int, ...] | None,
    stride: int | Sequence[int], padding: int | Sequence[int], dilation: int | Sequence[int], groups: int,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Strides, paddings and dilations, a number a dimension, of a convolution of shapes that fit, which are the same each step.

    Raises RuntimeError for what does not fit.
    """
    check_dimensions(name, x, w, n)
    stride, dilation = spread(name, "stride", stride, n), spread(name, "dilation", dilation, n)
    padding = spread(name, "padding", padding, n)
    check_numbers(name, stride, padding, dilation)
    check_shapes(name, n, x, w, bias, groups, False)
    kernel, spatial = w[2:], x[-n:]
    if min(out_sizes(spatial, (kernel, stride, padding, dilation))) <= 0:
        padded = [s + 2 * p for s, p in zip(spatial, padding, strict=True)]
        raise RuntimeError(f"{name}: Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                           f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size")  # fmt: skip
    return stride, padding, dilation


def named_padding(
    name: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    padding: str,
    stride: int | Sequence[int],
    dilation: int | Sequence[int],
) -> tuple[Any, tuple[int, ...]]:
    """The input and numeric padding for "same" or "valid"."""
    check_dimensions(name, input.shape, weight.shape, n)
    stride, dilation = spread(name, "stride", stride, n), spread(name, "dilation", dilation, n)
    kernel = tuple(weight.shape[2:])
    if padding == "valid":
        return input, (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'. {name} knows 'valid' and 'same'")
    if any(s != 1 for s in stride):
        raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if any(t % 2 for t in total):
        from rushlight.ops.shape.padding import constant_pad_nd

        # PyTorch puts the odd element after the image.
        input = constant_pad_nd(input, [x for t in reversed(total) for x in (0, t % 2)])
    return input, tuple(t // 2 for t in total)


def convolve_transposed(name: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None,
                        stride: int | Sequence[int], padding: int | Sequence[int], output_padding: int | Sequence[int],
                        groups: int, dilation: int | Sequence[int]) -> Tensor:  # fmt: skip
    """Transposed convolution in n dimensions, arguments checked."""
    if modes.autocast is not None:
        input, weight, bias = modes.autocast("lower", [input, weight, bias])
    check_dimensions(name, input.shape, weight.shape, n)
    stride, dilation = spread(name, "stride", stride, n), spread(name, "dilation", dilation, n)
    padding, extra = spread(name, "padding", padding, n), spread(name, "output_padding", output_padding, n)
    check_numbers(name, stride, padding, dilation)
    check_shapes(name, n, input.shape, weight.shape, None if bias is None else bias.shape, groups, True)
    check_dtypes(name, input, weight, bias, True)
    if min(extra) < 0:
        raise RuntimeError(f"{name}: negative output_padding is not supported, got {extra}")
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if e >= s and e >= d:
            raise RuntimeError(f"{name}: output padding must be smaller than either stride or dilation, but got "
                               f"output_padding={extra}, stride={stride}, dilation={dilation}")  # fmt: skip
    input, added = batched(input, n)
    sizes = tuple((s - 1) * st - 2 * p + d * (k - 1) + e + 1 for s, st, p, d, k, e in zip(
        input.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True))  # fmt: skip
    if min(sizes) <= 0:
        raise RuntimeError(f"{name}: given input size per channel {tuple(input.shape[2:])}, calculated output size per "
                           f"channel {sizes}: output size is too small")  # fmt: skip
    if 0 in input.shape[2:]:
        raise RuntimeError(f"{name}: Only zero batch or zero channel inputs are supported, but got input shape: "
                           f"{list(input.shape)}")  # fmt: skip
    shape = (input.shape[0], weight.shape[1] * groups, *sizes)
    y = conv_input_op(input, weight, shape, stride, padding, dilation, groups)
    if bias is not None:
        y = y + reshape_op(bias, (-1, *[1] * n))
    return reshape_op(y, y.shape[1:]) if added else y


def _publish(n: int) -> None:
    """conv{n}d and conv_transpose{n}d, in torch and torch.nn.functional."""

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
             padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:  # fmt: skip
        return convolve(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)

    def transposed(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
                   padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
                   dilation: int | Sequence[int] = 1) -> Tensor:  # fmt: skip
        return convolve_transposed(f"conv_transpose{n}d", n, input, weight, bias, stride, padding, output_padding,
                                   groups, dilation)  # fmt: skip

    said = (
        f"Cross-correlation in {n} dimensions.  input: (N, C, *S) or (C, *S), weight: (O, C/groups, *K), bias: (O) -> "
        '(N, O, *L) with L = (S + 2 padding - dilation (K - 1) - 1) / stride + 1.\n\n    padding: numbers, "same" or '
        '"valid". Raises RuntimeError where shapes do not fit.'
    )
    said_of_adjoint = (
        f"The adjoint of convolution in {n} dimensions.  input: (N, C, *S) or (C, *S), weight: (C, O/groups, *K), bias: "
        "(O) -> (N, O, *L) with L = (S - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1."
    )
    for ns in ("", "nn.functional"):
        function(ns=ns)(called(conv, f"conv{n}d", said))
        function(ns=ns)(called(transposed, f"conv_transpose{n}d", said_of_adjoint))


for _n in (1, 2, 3):
    _publish(_n)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of sequences that lie by time, batch, channels.  input: (T, N, C), weight: (K, C, O), bias: (O) -> (L, N, O)

    pad: zeros before and after; L = T + 2 pad - K + 1. Raises RuntimeError where shapes do not fit.
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError("conv_tbc: expected input and weight of 3 dimensions and bias of 1, got "
                           f"{input.dim()}, {weight.dim()}, {bias.dim()}")  # fmt: skip
    found = convolve("conv_tbc", 1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad, 1, 1)
    return found.permute(2, 0, 1)


for _ns in ("", "nn.functional"):
    function(ns=_ns)(conv_tbc)


@function()
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Tensor:  # fmt: skip
    """A convolution in as many dimensions as the weight has beyond two, or its transpose.

    input: (N, C, *S), weight: (K, C / groups, *W), transposed (C, K / groups, *W) -> (N, K, *L).
    Raises RuntimeError for a weight of other than 3 to 5 dimensions.
    """
    n = weight.dim() - 2
    if n not in (1, 2, 3):
        raise RuntimeError(f"convolution(): expected weight of 3 to 5 dimensions, got shape {list(weight.shape)}")
    if transposed:
        name = f"conv_transpose{n}d"
        return convolve_transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return convolve(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)
