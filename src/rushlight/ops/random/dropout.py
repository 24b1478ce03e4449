"""Dropout and its relatives: by element, by channel, and alpha dropout.

By element, one bit of each mask element is saved; by channel, one number a channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics import caller
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes
from rushlight.dispatch import families, randomness, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.keeping.rebuilt import watch
from rushlight.dispatch.meta import beside
from rushlight.dispatch.operands import one_number
from rushlight.dispatch.options import blank
from rushlight.dispatch.registry import function, inplace_of, op
from rushlight.dispatch.rules import laid_out, of_laid_out
from rushlight.generator import default_generator
from rushlight.kernels.dispatch import memory_order
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.floats import is_float, require
from rushlight.ops.elementwise.rectifier import publish_inplace
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


BLOCK = 1 << 16  # numbers that are drawn at once where those that stay are told one by one
FEW = 20_000  # elements up to which their bits take no more memory than a state


def draw(count: int, like: Tensor) -> Array:
    """The state of the default generator, (625) uint32, which goes on by the words that PyTorch takes for `count` elements."""
    return default_generator.numpy.ahead(2 * count * computed(like))


def computed(like: Tensor) -> bool:
    """Whether numbers are drawn for a tensor: not on the device meta, nor where shapes alone are asked for."""
    return not (like._meta or (modes.levels and any(level.dry for level in modes.levels)))


def mask_of(input: Tensor, p: float) -> Array:
    """Of few elements the bits of those that stay, of more the state of the generator from which they are drawn."""
    count = input._array.size if p < 1 else 0
    if 0 < count <= FEW and computed(input):
        return default_generator.numpy.coins(1 - p, count)
    return draw(count, input)


@op(name="native_dropout", half=None, aux=("bits",), repeatable=True, again=25, behind="input", over=True)
def dropout_op(input: Array, p: float, order: tuple[int, ...] | None, state: object) -> Array:
    """`input` / (1 - p) with probability 1 - p, else 0, by element; the `state` of a generator, or bits, decide where.  (*) -> (*)

    order: of the dimensions in memory, outermost first, in which numbers are drawn; None where it is that of the dimensions.
    """
    require(is_float(input.dtype) or input.dtype.kind == "c", "dropout", input)
    return backend.dropout(input, p, state, order)


@dropout_op.shape
def _(input: Array, order: tuple[int, ...] | None) -> list[shapes.Made]:
    return [shapes.Made(input.shape, input.dtype, order), shapes.Made(((input.size + 7) // 8,), np.dtype(np.uint8))]


@op(half=None, masks=("bits",), over=True)
def dropout_backward(grad: Array, bits: Array, p: float, order: tuple[int, ...] | None) -> Array:
    """`grad` / (1 - p) where the bit is set, else 0.  (*), ((n + 7) // 8,) uint8 -> (*)"""
    return backend.dropout_backward(grad, bits, p, order)


@dropout_backward.shape
def _(grad: Array, order: tuple[int, ...] | None) -> list[shapes.Made]:
    return [shapes.Made(grad.shape, grad.dtype, order)]


@dropout_backward.work
def _(grad: Array) -> int:
    return laid_out(grad)


def _scaled_into(x: object, bits: Array, p: float, order: tuple[int, ...] | None) -> None:
    backend.dropout_backward(x, bits, p, order, out=x)


dropout_backward.into(_scaled_into)
dropout_op.op.declare("remade", (dropout_backward.op, ("bits",)))
dropout_backward.grad("grad")(lambda g, bits, p, order: dropout_backward(g, bits, p, order))


dropout_op.grad(
    "input", raw=lambda g, bits, p, order: backend.dropout_backward(g, bits, p, order), shapes=of_laid_out(0)
)(lambda g, bits, p, order: dropout_backward(g, bits, p, order))


def _dropout_into(x: Array, p: float, order: tuple[int, ...] | None, state: object) -> tuple[Array, ...]:
    return (backend.dropout(x, p, state, order, out=x)[1],)


dropout_op.into(_dropout_into)
_dropout_ = inplace_of(dropout_op.op)


def check_p(name: str, p: float) -> None:
    """Raise ValueError unless `p` is a probability."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def check_input(name: str, input: Tensor | list[Any]) -> None:
    """Raise TypeError for what is not a tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind_of(input)}")


@function(ns=F, name="dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zero each element with probability `p` and scale the others by 1 / (1 - p).  (*) -> (*)

    Otherwise `input` itself.  Raises ValueError unless 0 <= p <= 1.
    Source: Srivastava et al., Dropout (2014).
    """
    check_p("dropout", p)
    check_input("dropout", input)
    if p == 0 or not training or not input._array.size:
        return input
    if randomness.innermost() is not None:
        keep = kept(p, input._array.shape)
        return (_scaled_ if inplace else scaled)(input, keep, 0.0 if p >= 1 else 1 / (1 - p))
    order = drawn_order(input._array)
    found = (_dropout_ if inplace else dropout_op)(input, p, None if order is None else tuple(order), mask_of(input, p))
    if not inplace and found._edge is not None:
        watch(found._edge, found)
    return found


def kept(p: float, shape: tuple[int, ...], order: Sequence[int] | None = None) -> Tensor:
    """Which elements stay: True with probability 1 - `p`, by the numbers of the default generator that PyTorch would take.

    order: of the dimensions, outermost first, in which they are drawn; None as they are.
    """
    if p >= 1:
        return wrap(np.zeros(shape, bool))
    if order is not None and randomness.innermost() is None:
        return wrap(kept(p, tuple(shape[i] for i in order))._held.transpose(np.argsort(order)))
    return randomness.fresh(lambda size: _drawn(p, size), shape)


def _drawn(p: float, size: tuple[int, ...]) -> Array:
    """`kept` as an array; the numbers, eight times as large, are drawn in blocks."""
    if modes.levels and any(level.dry for level in modes.levels):
        return blank(np.ones, size, np.dtype(bool))
    keep = np.empty(size, bool)
    flat = keep.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        np.less(default_generator.numpy.random(part.size), 1 - p, out=part)
    return keep


def drawn_order(array: Array) -> list[int] | None:
    """The order of memory, None where it is that of the dimensions."""
    return None if array.flags.c_contiguous else memory_order(array)


@function(ns="")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, ...]:
    """(dropout(input, p), mask), the mask a bool tensor.  (*) -> (*), (*)

    Raises RuntimeError for what is no probability, NotImplementedError for integers and bools.
    """
    array = input._array
    if train is False:
        return input.clone(), wrap(np.ones(array.shape, bool))
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"native_dropout: dropout probability has to be between 0 and 1, but got {p}")
    if array.dtype.kind in "biu":
        raise NotImplementedError(f"native_dropout(): not implemented for {input.dtype}: the elements that stay are divided "
                                  "by 1 - p, convert them with input.float()")  # fmt: skip
    keep = kept(p, array.shape, drawn_order(array))
    return scaled(input, keep, 0.0 if p >= 1 else 1 / (1 - p)), keep


@op(
    aten=("mul.Tensor",),
    grads={"input": lambda g, keep, scale: scaled(g, keep, scale)},
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
)
def scaled(input: Array, keep: Array, scale: float) -> Array:
    """input * scale where `keep` is True, else 0.  (*), broadcast (*) bool -> (*)"""
    factors = np.asarray(keep * input.dtype.type(scale))
    return np.multiply(input, factors, out=factors if factors.shape == input.shape else None)


_scaled_ = inplace_of(scaled.op)


@function(ns="")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """grad_output * mask * scale.  (*), (*) bool -> (*)"""
    return scaled(grad_output, mask, scale)


# By channel -------------------------------------------------------------------------------------------------


@op(
    name="feature_dropout",
    half=None,
    grads={"input": lambda g, noise: by_channel(g, noise)},
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
)
def by_channel(input: Array, noise: Array) -> Array:
    """Each channel times its number.  (N, C, *), (N, C, 1...) -> (N, C, *)"""
    return input * noise


by_channel.into(lambda x, noise: np.multiply(x, noise, out=x))
_by_channel_ = inplace_of(by_channel.op)


def kept_channels(input: Tensor, p: float) -> Tensor:
    """Which channels of (N, C, *) stay: bool (N, C, 1...)."""
    shape = input._array.shape
    return kept(p, (*shape[:2], *(1,) * (len(shape) - 2)))


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of whole channels.  (N, C, *) -> (N, C, *)"""
    if p == 0 or not training or not input._array.size:
        return input
    require(input.dtype.is_floating_point or input.dtype.is_complex, "feature_dropout", input)
    if input.ndim < 2:
        raise RuntimeError(
            f"feature_dropout: expected an input of at least 2 dimensions (N, C, *), got shape {list(input.shape)}"
        )
    scale = 0.0 if p >= 1 else 1 / (1 - p)
    noise = cast(kept_channels(input, p), input._array.dtype) * scale
    return (_by_channel_ if inplace else by_channel)(input, beside(noise, input))


def unbatched(input: Tensor, name: str, dims: int) -> bool:
    """Whether `input` of `dims` - 1 or `dims` dimensions lacks its batch; warns of others."""
    if input.ndim not in (dims - 1, dims):
        caller.warn(f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an "
                    f"error in a future release. Use input of shape (N, C{', *' if dims > 2 else ''}) with "
                    f"{dims - 1} or {dims} dimensions, or dropout by element.")  # fmt: skip
    return bool(input.ndim == dims - 1)


def channel_dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool, lone: bool) -> Tensor:
    """Dropout of channels of `input`, which has no batch dimension if `lone`."""
    if not lone:
        return feature_dropout(input, p, training, inplace)
    result = feature_dropout(input.unsqueeze(0), p, training, False).squeeze(0)
    return input.copy_(result) if inplace else result


@function(ns=F)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels.  (N, C, L) or (C, L) -> the same.  Raises RuntimeError for other inputs."""
    check_p("dropout1d", p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
                           "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
                           "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")  # fmt: skip
    return channel_dropout("dropout1d", input, p, training, inplace, input.ndim == 2)


@function(ns=F)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels.  (N, C, H, W) or (N, C, L) -> the same."""
    check_p("dropout2d", p)
    if unbatched(input, "dropout2d", 4):
        caller.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
            "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead."
        )
    return channel_dropout("dropout2d", input, p, training, inplace, False)


@function(ns=F)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels.  (N, C, D, H, W) or (C, D, H, W) -> the same."""
    check_p("dropout3d", p)
    unbatched(input, "dropout3d", 5)
    return channel_dropout("dropout3d", input, p, training, inplace, input.ndim != 5)


# Alpha dropout ---------------------------------------------------------------------------------------------

ALPHA = 1.7580993408473766  # the limit of selu at minus infinity, with its sign changed


@op(
    name="alpha_dropout",
    masks=("keep",),
    cut=True,
    grads={"input": lambda g, keep, scale: scaled(g, keep, scale)},
    shape=shapes.same,
    repeatable=True,
    batch=families.targeted,
)
def alpha_op(input: Array, keep: Array, scale: float, high: float, low: float) -> Array:
    """input * scale + high where `keep` is True, else low.  (*), broadcast (*) bool -> (*)"""
    return _alpha(input, keep, scale, high, low, np.empty_like(input))


def _alpha(x: Array, keep: Array, scale: float, high: float, low: float, out: Array) -> Array:
    np.multiply(x, scale, out=out)
    out += high
    np.copyto(out, low, where=~keep)
    return out


def _alpha_into(x: Any, keep: Any, scale: float, high: float, low: float) -> None:
    _alpha(x, keep, scale, high, low, x)


alpha_op.into(_alpha_into)
_alpha_ = inplace_of(alpha_op.op)


def alpha_any(name: str, input: Tensor, p: float, training: bool, inplace: bool, keep: Callable[..., Any]) -> Tensor:
    """Replace what `keep()` does not keep by selu's limit, then restore mean 0 and variance 1."""
    check_p(name, p)
    check_input(name, input)
    if p == 0 or not training or not input._array.size:
        return input
    require(input.dtype.is_floating_point, name, input)
    scale = ((ALPHA * ALPHA * p + 1) * (1 - p)) ** -0.5 if p < 1 else 0.0
    limits = ALPHA * scale * p, ALPHA * scale * (p - 1)
    return (_alpha_ if inplace else alpha_op)(input, beside(keep(), input), scale, *limits)


@function(ns=F)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what selu gives.  (*) -> (*)

    Source: Klambauer et al., Self-Normalizing Neural Networks (2017).
    """

    def keep() -> Tensor:
        return kept(p, input._array.shape, drawn_order(input._array))

    return alpha_any("alpha_dropout", input, p, training, inplace, keep)


@function(ns=F)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of whole channels.  (N, C, *) -> (N, C, *)"""
    p = one_number("feature_alpha_dropout", "p", p)
    if input.ndim < 2 and training and 0 < p:
        raise RuntimeError(f"feature_alpha_dropout: Feature dropout requires at least 2 dimensions in the input, got "
                           f"{input.ndim}")  # fmt: skip
    return alpha_any("feature_alpha_dropout", input, p, training, inplace, lambda: kept_channels(input, p))


def _with_train(fn: Callable[..., Any], name: str, inplace: bool) -> Callable[..., Any]:
    def call(input: Tensor, p: float, train: bool) -> Tensor:
        return fn(input, p, train, inplace)

    call.__doc__ = f"As torch.nn.functional.{name.rstrip('_')}, with every argument required."
    return publish_inplace(name, call, "")


def _plain_feature(input: Any, p: float, train: bool, inplace: bool) -> object:
    check_p("feature_dropout", p)
    return feature_dropout(input, p, train, inplace)


for _fn, _name in ((dropout, "dropout"), (alpha_dropout, "alpha_dropout"),
                   (feature_alpha_dropout, "feature_alpha_dropout"), (_plain_feature, "feature_dropout")):  # fmt: skip
    _with_train(_fn, _name, False)
    _with_train(_fn, f"{_name}_", True)
