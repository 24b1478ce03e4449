"""More views: movedim, unflatten, atleast_*, and the same views as copies."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics.foreign import kind_of
from rushlight.basics.naming import called
from rushlight.basics.size import Size
from rushlight.dispatch import call
from rushlight.dispatch.compute import check_broadcast
from rushlight.dispatch.dims import as_int, by_keyword, listed, numpy_names, sizes, wrap_dim
from rushlight.dispatch.formats import contiguous_format
from rushlight.dispatch.operands import held, raw
from rushlight.dispatch.outs import check_dtypes
from rushlight.dispatch.registry import NAMESPACES, function, known_as
from rushlight.ops.elementwise.complexes import resolve_conj, resolve_neg, view_as_complex, view_as_real
from rushlight.ops.elementwise.convert import cast, contiguous, copy, detach
from rushlight.ops.shape import splitting, views
from rushlight.ops.shape.diagonal import diagonal
from rushlight.ops.shape.reshape import broadcast, expand, permute_op, reshape, reshape_op, slice_op, sum_to
from rushlight.ops.shape.strided import as_strided, unfold
from rushlight.tensor import Tensor


def _moved(which: str, given: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front.  Raises RuntimeError, which names the argument, if one is there twice."""
    found = tuple([wrap_dim(d, ndim) for d in given])
    if len(set(found)) != len(found):
        raise RuntimeError(f"movedim: repeated dim in `{which}` ({list(given)})")
    return found


@function(method=True, aliases=("moveaxis",))
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dimensions `source` moved to `destination`, the others in order: a view.  (*) -> (*)"""
    ndim = held(input).ndim
    if isinstance(source, (tuple, list)) != isinstance(destination, (tuple, list)):
        raise TypeError(f"movedim(): arguments 'source' and 'destination' must be two ints or two tuples of ints, not "
                        f"{type(source).__name__} and {type(destination).__name__}")  # fmt: skip
    a, b = ((d,) if hasattr(d, "__index__") else tuple(d) for d in (source, destination))
    if len(a) != len(b):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(a)} dims) should contain the same "
                           f"number of dims as destination ({list(b)} dims)")  # fmt: skip
    a, b = _moved("source", a, ndim), _moved("destination", b, ndim)
    if not ndim:
        return permute_op(input, ())
    rest = iter(d for d in range(ndim) if d not in a)
    order = [a[b.index(d)] if d in b else next(rest) for d in range(ndim)]
    return permute_op(input, tuple(order))


@function(method=True)
@numpy_names
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension `dim` as several, of `sizes`, one of which may be -1: a view.  (*) -> (*)"""
    shape = held(input).shape
    d = wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError(f"unflatten: Dimension specified as {dim} but tensor has no dimensions: use reshape()")
    wanted = tuple(as_int(n, "unflatten", "sizes") for n in sizes)
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in wanted if n != -1)
    size = shape[d]
    if wanted.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in wanted and known and size % known == 0:
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    if math.prod(wanted) != size or -1 in wanted:
        raise RuntimeError(f"unflatten: Provided sizes {list(wanted)} don't multiply up to the size of dim {d} ({size}) in "
                           "the input tensor")  # fmt: skip
    return views.view(input, (*shape[:d], *wanted, *shape[d + 1 :]))


@function(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view of what is contiguous, else a copy.  (*) -> (N)"""
    return reshape(contiguous(input), (held(input).size,))


@function(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Dimensions `axis0` and `axis1` exchanged, a view.  (*) -> (*)"""
    return views.transpose(input, axis0, axis1)


@function()
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """`input` broadcast to `size` without copying.  (*) -> size"""
    return expand(input, listed(size, "broadcast_to", "size"))


def broadcast_method(self: Tensor, *size: int | Sequence[int], **named: object) -> Tensor:
    """`self` broadcast to `size`, given as ints or one sequence, without copying.  (*) -> size"""
    if named:
        size = by_keyword("broadcast_to", "size", size, named)
    return expand(self, sizes(size, "broadcast_to", "size"))


Tensor.broadcast_to = known_as(broadcast_method, "broadcast_to", "Tensor")  # type: ignore[method-assign]


@function(method=True, ns="Tensor")
def sum_to_size(self: Tensor, *size: int | Sequence[int], **named: object) -> Tensor:
    """`self` summed over the dimensions in which `size` broadcasts to its shape.  (*) -> size"""
    if named:
        size = by_keyword("sum_to_size", "size", size, named)
    elif not size:
        raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
    target = sizes(size, "sum_to_size", "size")
    have = raw(self).shape
    lead = len(have) - len(target)
    if lead < 0 or any(n not in (1, have[i + lead]) for i, n in enumerate(target)):
        raise RuntimeError(f"size {{{list(have)}}} is not expandable to size {{{list(target)}}}.")
    if raw(self).dtype.kind in "bui" and (not target or target != have):  # sums of integers count in int64
        return sum_to(cast(self, np.dtype(np.int64)), target)
    return self if target == have else sum_to(self, target)


@function()
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which shapes (tuples or ints) broadcast.  Raises RuntimeError if there is none, ValueError for negative lengths."""
    known = [sizes((s,), "broadcast_shapes", "shapes") for s in shapes]
    for shape in known:
        if any(n < 0 for n in shape):
            raise ValueError(f"Attempting to broadcast a dimension with negative length: {shape}")
    try:
        return Size(np.broadcast_shapes(*known))
    except ValueError:
        raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape: "
                           f"{', '.join(map(str, known))}") from None  # fmt: skip


@function()
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """The tensors, each broadcast to their common shape without copying; those that have it are returned as they are.

    (*), ... -> [(*), ...]
    """
    found = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    shapes = [raw(x).shape for x in found]
    if len(set(shapes)) <= 1:
        return tuple(found)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        check_broadcast("broadcast_tensors", found)
        raise
    return tuple([x if x_shape == shape else broadcast(x, shape) for x, x_shape in zip(found, shapes, strict=True)])


def atleast(input: Tensor, ndim: int) -> Tensor:
    """A tensor with dimensions of size 1 added until there are `ndim`; `input` itself where it has as many."""
    if not hasattr(input, "shape"):
        raise TypeError(f"atleast_{ndim}d(): expected Tensors, not {kind_of(input)}")
    shape = held(input).shape
    if len(shape) >= ndim:
        return input
    if ndim == 3 and len(shape) == 2:
        return reshape_op(input, (*shape, 1))
    if ndim == 3 and len(shape) == 1:
        return reshape_op(input, (1, *shape, 1))
    return reshape_op(input, (*[1] * (ndim - len(shape)), *shape))


def _atleast(ndim: int) -> Callable[..., Any]:
    def fn(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        if len(tensors) == 1:
            one = tensors[0]
            return tuple(atleast(x, ndim) for x in one) if isinstance(one, (tuple, list)) else atleast(one, ndim)
        return tuple(atleast(x, ndim) for x in tensors)

    return called(
        fn,
        f"atleast_{ndim}d",
        f"Tensors with dimensions of size 1 added until they have at least {ndim}; several give a tuple.",
    )


for _n in (1, 2, 3):
    function()(_atleast(_n))


# The same as copies --------------------------------------------------------------------------------


def copying(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The form of a view function that returns copies."""

    @functools.wraps(fn)
    def made(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        result = fn(*args, **kwargs)
        several = isinstance(result, tuple)
        result = tuple(copy(x, contiguous_format) for x in result) if several else copy(result, contiguous_format)
        if out is None:
            return result
        check_dtypes(name, out, result)
        call.write_out(name, out, result)
        return None if several else out

    return called(made, name, f"As {fn.__name__}, but with copies for views.")


def slice_view(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """start:end:step of dimension `dim`.  (*) -> (*)"""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    dim = wrap_dim(dim, raw(input).ndim)
    return slice_op(input, (*[slice(None)] * dim, slice(start, end, step), ...))


@functools.wraps(views.view)
def viewed(self: Tensor, *shape: Any, **given: Any) -> Tensor:
    """As `view`, also where the strides allow none."""
    return views.view(self.contiguous() if isinstance(self, Tensor) else self, *shape, **given)


def same(input: Tensor) -> Tensor:
    """`input` itself.  (*) -> (*)"""
    return input


for _fn, _name in ((expand, "expand_copy"), (views.permute, "permute_copy"), (views.transpose, "transpose_copy"),
                   (views.t, "t_copy"), (views.squeeze, "squeeze_copy"), (views.unsqueeze, "unsqueeze_copy"),
                   (viewed, "view_copy"), (views.select, "select_copy"),
                   (splitting.split, "split_copy"), (splitting.split_with_sizes, "split_with_sizes_copy"),
                   (splitting.unbind, "unbind_copy"), (as_strided, "as_strided_copy"),
                   (diagonal, "diagonal_copy"), (unfold, "unfold_copy"), (slice_view, "slice_copy"),
                   (same, "alias_copy"), (detach, "detach_copy"), (view_as_real, "view_as_real_copy"),
                   (view_as_complex, "view_as_complex_copy")):  # fmt: skip
    function()(copying(_fn, _name))


@function(method=True, out="same")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """As narrow, a copy.  Raises RuntimeError for a dimension that does not exist."""
    if dim >= max(held(input).ndim, 1):
        raise RuntimeError(f"narrow_copy(): Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. dim "
                           f"{dim} does not exist in a tensor of {held(input).ndim} dimensions")  # fmt: skip
    if length < 0:
        size = held(input).shape[dim]
        raise RuntimeError(f"narrow_copy(): start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return copy(views.narrow(input, dim, start, length), contiguous_format)


def apart(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Pieces that share memory with what they were made of, and count changes each for itself; inference tensors count none."""
    for part in parts:
        if isinstance(part, Tensor):
            part._view = None
            part._storage = part._storage if part._inference else None
    return parts


def resolved(x: Tensor) -> Tensor:
    """`x`, or a copy without its conjugate and negative bit: a change of one piece must not depend on how others see it."""
    return resolve_neg(resolve_conj(x)) if isinstance(x, Tensor) else x


@function()
@numpy_names
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As split, but the pieces may be changed in place, as if they were no views of one tensor: nobody notices who saved it."""
    return apart(splitting.split(resolved(tensor), split_size, dim))


@function()
@numpy_names
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As chunk, but the pieces may be changed in place, as if they were no views of one tensor: nobody notices who saved it."""
    return apart(splitting.chunk(resolved(input), chunks, dim))


@function()
def unsafe_split_with_sizes(input: Tensor, split_sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """As split_with_sizes, but the pieces may be changed in place, as if they were no views: nobody notices who saved it."""
    return apart(splitting.split_with_sizes(resolved(input), split_sizes, dim))


for _name in ("unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"):
    setattr(Tensor, _name, NAMESPACES[""][_name])
