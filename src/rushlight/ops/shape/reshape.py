"""Views that rearrange, and what undoes them: expand, sum_to_size, reshape, permute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics.errors import explained
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import by_keyword, listed, sizes
from rushlight.dispatch.fast_views import at_once, made_copy, made_view, shares
from rushlight.dispatch.formats import NUMPY_2_0, contiguous_format, in_shape, viewable
from rushlight.dispatch.keeping.shown import SELECT, SLICE, unsqueezed
from rushlight.dispatch.keeping.unmade import Unmade, come_true, shaped, unseen
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import check_count
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.engine.conform import Part, fits, reduce_axes, tensor_functions
from rushlight.kernels.sums import add_up
from rushlight.tensor import Tensor


@op(aten_call="expanded", name="expand", view=True, linear=True,
    grads={"input": lambda g, input_shape: sum_to(g, input_shape)}, batch=families.expanded)  # fmt: skip
def broadcast(input: Array, size: tuple[int, ...]) -> Array:
    """`input` broadcast to `size`, a view.  (*) -> size"""
    flags = input.flags
    if flags.c_contiguous and input.size and flags.writeable:
        strides, lead = input.strides, len(size) - input.ndim
        steps = [s if n == m else 0 for n, m, s in zip(input.shape, size[lead:], strides, strict=True)]
        return np.ndarray(size, input.dtype, input, 0, [0] * lead + steps)
    out = np.broadcast_to(input, size)
    if flags.writeable:
        out.flags.writeable = True
    return out


@op(
    linear=True,
    grads={"input": lambda g, input_shape: broadcast(g, input_shape)},
    complex_half="widens",
    shape=shapes.sized,
    batch=families.summed,
)
def sum_to(input: Array, size: tuple[int, ...]) -> Array:
    """`input` summed over the dimensions in which `size` was broadcast.  (*) -> size"""
    if not fits(input.shape, tuple(size)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    axes = reduce_axes(input.shape, tuple(size))
    return add_up(input, tuple(axes), True).reshape(size) if axes else input.copy()


@function(method=True)
def expand(input: Any, *size: Any, implicit: bool = False, **named: object) -> Tensor:
    """`input` broadcast to `size` without copying; -1 keeps a dimension.  (*) -> size"""
    if named:
        size = by_keyword("expand", "size", size, named)
    target, have = sizes(size, "expand", "size"), (input if input.__class__ is np.ndarray else input._held).shape
    lead = len(target) - len(have)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(have)})"
        )
    full = []
    for i, n in enumerate(target):
        own: Any = have[i - lead] if i >= lead else None
        if n == -1 and own is None:
            raise RuntimeError(f"expand: The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
                               f"dimension {i}")  # fmt: skip
        n = own if n == -1 else n
        if n < 0 or (own is not None and own != n and own != 1):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton dimension "
                f"{i}.  Target sizes: {list(target)}.  Tensor sizes: {list(have)}"
            )
        full.append(n)
    size = tuple(full)
    if not at_once(input):
        return broadcast(input, size)
    try:
        return made_view(broadcast.op, input, broadcast.op.forward(input._held, size), (size,))
    except ValueError:
        check_count(size)
        raise


tensor_functions["sum_to_size"] = sum_to
tensor_functions["expand"] = broadcast


@op(aten_call="viewed", name="view", view=True, linear=True,
    grads={"input": lambda g, input_shape: reshape_op(g, input_shape)}, batch=families.shifted)  # fmt: skip
def reshape_op(input: Array, shape: tuple[int, ...]) -> Array:
    """The elements in another shape: a view where strides allow, else a copy.  (*) -> shape"""
    return in_shape(input, shape)


@reshape_op.shape
def _(input: Array, shape: tuple[int, ...]) -> list[shapes.Made] | None:
    if input.flags.c_contiguous:
        return None
    try:
        if NUMPY_2_0:  # setting a shape is deprecated since
            input.view().shape = shape
        else:
            np.reshape(input, shape, copy=False)
    except (AttributeError, ValueError):
        return [shapes.Made(tuple(shape), input.dtype)]
    return None


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A result that nobody else has, in another shape.  (*) -> shape

    It is no view: changing it in place depends on no mode in which it was made.
    """
    found = reshape_op(x, shape)
    if isinstance(found, Tensor):
        found._view = None
        if found._dual_base is not None:
            found._dual_base = None
    return found


def infer(input: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with its -1 worked out.  Raises RuntimeError where the number of elements differs."""
    count = math.prod(input.shape)
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        if known == 0 and count == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if known and count % known == 0:
            return tuple(count // known if n == -1 else n for n in shape)
    elif math.prod(shape) == count and all(n >= 0 for n in shape):
        return shape
    if any(n < -1 for n in shape):
        raise RuntimeError(
            f"invalid shape dimension {min(shape)} at index {shape.index(min(shape))} of shape {list(shape)}"
        )
    raise explained(
        RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}"), "another-number-of-elements"
    )


@function(method=True)
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The elements in another shape, -1 worked out: a view where strides allow, else a copy.  (*) -> shape"""
    if named:
        shape = by_keyword("reshape", "shape", shape, named)
    if len(shape) == 1 and shape[0].__class__ is not int:
        shape = shape[0]
    if type(input) is Unmade:
        if unseen(input):
            return input.reshape(shape)
        target = infer(input, sizes((shape,), "reshape", "shape"))
        if not viewable(input._held, target):
            late: Tensor | None = shaped["reshape"](input, (target,), target)
            return reshape(come_true(input), target) if late is None else late
    if at_once(input):
        array = input._held
        try:
            result = in_shape(array, shape)
            usual = result.shape == shape or min(shape) >= -1
        except (TypeError, ValueError):
            usual = False
        if usual:
            made = made_view if array.flags.c_contiguous or shares(result, array) else made_copy
            return made(reshape_op.op, input, result, (result.shape,))
    target = infer(input, sizes((shape,), "reshape", "shape"))
    if getattr(raw(input), "interpreted", False) and not viewable(raw(input), target):
        input = input.clone(memory_format=contiguous_format)  # a copy of each sample, as outside of vmap
    return reshape_op(input, target)


def torch_reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in another shape, -1 worked out: a view where strides allow, else a copy.  (*) -> shape"""
    if shape.__class__ is not tuple:
        shape = listed(shape, "reshape", "shape")
    return reshape(input, shape)


NAMESPACES[""]["reshape"] = known_as(torch_reshape, "reshape")


@op(aten=("squeeze.dims",), aten_call="without_ones", view=True, linear=True,
    grads={"input": lambda g, input_shape: reshape_op(g, input_shape)}, batch=families.shifted)  # fmt: skip
def squeeze_op(input: Array, shape: tuple[int, ...]) -> Array:
    """Without dimensions of size 1, so that `shape` is left: a view.  (*) -> shape"""
    return input.reshape(shape)


@op(aten_call="with_one", aten_gradient="with_one", saved_as={"dim": unsqueezed}, view=True, linear=True,
    grads={"input": lambda g, input_shape: reshape_op(g, input_shape)}, batch=families.shifted)  # fmt: skip
def unsqueeze_op(input: Array, shape: tuple[int, ...]) -> Array:
    """With dimensions of size 1, so that it has `shape`: a view.  (*) -> shape"""
    return input.reshape(shape)


@op(aten_call="permuted", view=True, linear=True, batch=families.permuted)
def permute_op(input: Array, dims: tuple[int, ...]) -> Array:
    """The dimensions in another order, a view.  (*) -> (*)"""
    return input.transpose(dims)


@permute_op.grad("input")
def _(g: Array | Tensor, dims: tuple[int, ...]) -> Array | Tensor:
    back = [0] * len(dims)
    for i, d in enumerate(dims):
        back[d] = i
    return permute_op(g, tuple(back))


@op(aten=("transpose.int",), aten_gradient="transposed", view=True, linear=True,
    grads={"input": lambda g, dim0, dim1: transpose_op(g, dim0, dim1)}, batch=families.shifted)  # fmt: skip
def transpose_op(input: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions exchanged, a view.  (*) -> (*)"""
    return input.swapaxes(dim0, dim1)


@op(
    aten=("slice.Tensor",),
    aten_call="sliced",
    aten_gradient="part",
    saved_as=SLICE,
    view=True,
    linear=True,
    batch=families.shifted,
)
def slice_op(input: Array, index: tuple[Any, ...]) -> Array:
    """Basic indexing with ints, slices, None and Ellipsis; there must be an Ellipsis: a view.  (*) -> (*)"""
    return input[index]


@op(
    aten=("select.int",),
    aten_call="sliced",
    aten_gradient="part",
    saved_as=SELECT,
    view=True,
    linear=True,
    batch=families.shifted,
)
def select_op(input: Array, index: tuple[Any, ...]) -> Array:
    """As `slice_op`; what is shown as the name where the index is an integer.  (*) -> (*)"""
    return input[index]


def _slice_raw(g: Array, input_shape: tuple[Any, ...], index: tuple[Any, ...]) -> Part:
    return Part(input_shape, index, g)


def _slice_grad(g: Tensor, input_shape: tuple[int, ...], index: tuple[Any, ...]) -> Tensor:
    return slice_scatter_zeros(g, input_shape, index)


slice_op.grad("input", raw=_slice_raw, shapes=_slice_raw)(_slice_grad)
select_op.grad("input", raw=_slice_raw, shapes=_slice_raw)(_slice_grad)


@op(
    linear=True,
    grads={"input": lambda g, index: slice_op(g, index)},
    complex_half="moves",
    shape=shapes.sized,
    batch=families.shifted,
)
def slice_scatter_zeros(input: Array, size: tuple[int, ...], index: tuple[Any, ...]) -> Array:
    """Zeros of shape `size` with `input` at `index`: the adjoint of slicing.  (*) -> size"""
    out = np.zeros(size, input.dtype)
    out[index] = input
    return out
