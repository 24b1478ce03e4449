"""Differences, trapezoids and numerical gradients along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.dispatch.dims import numpy_names, wrap_dim, wrap_dims
from rushlight.dispatch.named import named
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.reduce.scan import cumsum, join, slice_of
from rushlight.ops.reduce.sums import sum_
from rushlight.ops.shape.join import cat
from rushlight.tensor import Tensor

PART = 1 << 19  # numbers of 16 bits that are made float32 at once


@function(method=True, out=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """The n-th differences of neighbours along `dim`, with `prepend` and `append` put at its ends first.  (*) -> (*)

    n=0 is a copy of `input` alone, as in PyTorch.
    """
    array = raw(input)
    if array.ndim < 1:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim if axis is None else axis, array.ndim)
    if n == 0:
        return named.zeros_like(input) + input
    for part in (prepend, append):
        _check_end(part, array.shape, dim)
    pieces = [x for x in (prepend, input, append) if x is not None]
    x = cat(pieces, dim) if len(pieces) > 1 else input
    length = raw(x).shape[dim]
    for _ in range(min(n, length)):
        length = raw(x).shape[dim]
        high, low = slice_of(x, dim, min(1, length), length), slice_of(x, dim, 0, max(length - 1, 0))
        x = named.logical_xor(high, low) if raw(x).dtype == np.bool_ else high - low
    return x


def _check_end(part: Tensor | None, shape: tuple[int, ...], dim: int) -> None:
    """Raise RuntimeError where `part` cannot be put at an end, along `dim`, of a tensor of this shape."""
    if part is None:
        return
    given = raw(part).shape
    if len(given) != len(shape):
        raise RuntimeError(f"diff expects prepend or append to be the same dimension as input: got {len(given)}, expected "
                           f"{len(shape)} dimensions")  # fmt: skip
    for d, (have, want) in enumerate(zip(given, shape, strict=True)):
        if d != dim and have != want:
            raise RuntimeError(f"diff expects the shape of tensor to prepend or append to match that of input except along the "
                               f"differencing dimension; input.size({d}) = {want}, but got tensor.size({d}) = {have}")  # fmt: skip


def widths(name: str, y: Tensor, x: Tensor, dim: int) -> Any:
    """The distances between the places `x` of the elements of `y` along `dim`."""
    n, have = raw(y).shape[dim], raw(x)
    if have.ndim == 1:
        if have.shape[0] != n:
            raise RuntimeError(f"{name}(): There must be one `x` value for each sample point: got {have.shape[0]}, "
                               f"expected {n}")  # fmt: skip
        step = diff(x)
        return step.view(-1, *[1] * (raw(y).ndim - dim - 1))
    if have.ndim < raw(y).ndim:
        x = x.view(*[1] * (raw(y).ndim - have.ndim), *have.shape)
    size = raw(x).shape[dim]
    return slice_of(x, dim, 1, size) - slice_of(x, dim, 0, size - 1)


def areas(name: str, y: Tensor | list[Any], x: Tensor | None, dx: int, dim: int) -> Tensor | None:
    """The area of each trapezoid, twice."""
    if raw(y).dtype == np.bool_ or (x is not None and raw(x).dtype == np.bool_):
        raise RuntimeError(f"{name}: received a bool input. Bool input is not supported.")
    if not raw(y).ndim:
        raise IndexError(f"{name}(): Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, raw(y).ndim)
    n = raw(y).shape[dim]
    y = cast(y, np.dtype(np.int64)) if raw(y).dtype.kind in "iu" else wide(y)  # of integers, sums of two are exact
    if x is not None and raw(x).ndim == 0:
        raise RuntimeError(f"{name}(): the places x must have at least one dimension")
    if n == 0:
        return None
    pairs = wide(slice_of(y, dim, 1, n) + slice_of(y, dim, 0, n - 1))
    return pairs * (dx if x is None else widths(name, y, x, dim))


def wide(y: Any) -> Tensor:
    """`y` in a dtype in which sums do not overflow: float64 for integers, float32 for 16 bits."""
    dtype = raw(y).dtype
    if dtype.kind in "iu":
        return cast(y, np.dtype(np.float64))
    return cast(y, dtypes.float32.numpy) if dtype in dtypes.HALVES else y


def halved(total: Tensor, y: Tensor, x: Tensor | None) -> Tensor:
    """total / 2, in the dtype of `y` and the places; of integers in the default one."""
    dtype = dtypes.result_dtype([raw(t) for t in (y, x) if t is not None]).numpy
    if dtype.kind in "iu":
        dtype = dtypes.get_default_dtype().numpy
    found = total / 2
    return found if raw(found).dtype == dtype else cast(found, dtype)


def places(x: Tensor | None, dx: int | None, given: int | None) -> tuple[Any, Any]:
    """x and dx of the overloads (y, x) and (y, dx)."""
    if x is not None and not isinstance(x, Tensor):
        return None, x
    if x is not None and given is not None:
        raise TypeError(
            "trapezoid() received an invalid combination of arguments: x says where the values are, and so does dx"
        )
    return x, 1 if given is None else given


def cut_along(y: Any, dim: int) -> int | None:
    """Of large arrays of 16 bits, integrated along rows that lie side by side, the dimension along which a few go to float32 at a
    time: each row is added up as it is among all."""
    last = y.ndim - 1
    if y.dtype not in dtypes.HALVES or y.size <= PART or last < 1 or dim not in (-1, last):
        return None
    axis = max(range(last), key=lambda i: y.shape[i])
    lies = getattr(getattr(y, "flags", None), "c_contiguous", False)
    return axis if lies and y.shape[axis] > 1 else None


def parts(y: Tensor, axis: int) -> list[Any]:
    """Parts of a tensor of about `PART` elements along a dimension."""
    shape = raw(y).shape
    step = max(1, PART * shape[axis] // math.prod(shape))
    return [slice_of(y, axis, start, min(start + step, shape[axis])) for start in range(0, shape[axis], step)]


def evenly(y: Tensor, dx: Any, dim: int) -> Tensor:
    """The integral of real numbers at one distance: their sum without half of the first and the last, in one pass."""
    n = raw(y).shape[dim]
    ends: Any = slice_of(y, dim, 0, 1) + slice_of(y, dim, n - 1, n)
    return (sum_(y, dim) - sum_(ends, dim) * 0.5) * dx


@function(aliases=("trapz",))
@numpy_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by trapezoids, at the places `x` or at distance `dx`.  (*) -> (*)"""
    x, dx = places(x, dx, dx)
    if x is None and raw(y).dtype.char in "fd" and raw(y).ndim and raw(y).shape[(dim := wrap_dim(dim, raw(y).ndim))]:
        return evenly(y, dx, dim)
    if (x is None or raw(x).ndim == 1) and (axis := cut_along(raw(y), dim)) is not None:
        given: dict[str, Any] = {"dx": dx} if x is None else {"x": x}
        return cat([trapezoid(part, dim=dim, **given) for part in parts(y, axis)], axis)
    found = areas("trapezoid", y, x, dx, dim)
    if found is None:
        shape = [n for i, n in enumerate(raw(y).shape) if i != wrap_dim(dim, raw(y).ndim)]
        return named.zeros(shape, dtype=y.dtype)
    return halved(sum_(found, dim), y, x)


@function()
@numpy_names
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral of `y` along `dim` by trapezoids, at the places `x` or at distance `dx`.  (*) -> (*)"""
    x, dx = places(x, dx, dx)
    found = areas("cumulative_trapezoid", y, x, dx, dim)
    if found is None:
        return cast(y, dtypes.get_default_dtype().numpy) if raw(y).dtype.kind in "iu" else y
    return halved(cumsum(found, dim), y, x)


# torch.gradient ------------------------------------------------------------------------------------


def spacings(spacing: tuple[Tensor, ...] | None, count: int) -> list[Any]:
    """A step or coordinates for each dimension."""
    if spacing is None:
        return [1.0] * count
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != count:
            raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
                               f"have the same length, but got a spacing argument of length {len(spacing)} and a dim argument "
                               f"of length {count}.")  # fmt: skip
        return list(spacing)
    return [spacing] * count


def check_step(input: Tensor, step: object) -> None:
    """Raise RuntimeError for coordinates that are no vector, or lie on another device."""
    if not isinstance(step, Tensor):
        return
    if raw(step).ndim > 1:
        raise RuntimeError("torch.gradient expected each element of spacing to have one dimension, but got an element with "
                           f"{raw(step).ndim}")  # fmt: skip
    if step.device != input.device:
        raise RuntimeError("torch.gradient expected each tensor to be on the same device, but got devices "
                           f"{step.device} and {input.device}.")  # fmt: skip


def along(x: Tensor, step: Any, dim: int, edge_order: int) -> Any:
    """The numerical derivative along one dimension: central differences inside, one-sided ones at the edges."""
    n = raw(x).shape[dim]
    if n < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    if isinstance(step, Tensor) and raw(step).ndim:
        h = diff(step).view(-1, *[1] * (raw(x).ndim - dim - 1))
    else:
        h = None
        step = raw(step).item() if isinstance(step, Tensor) else step
    inner = None if n < 3 else _uniform(x, step, dim, n) if h is None else _uneven(x, h, dim, n)
    first, last = _edges(x, step, h, dim, n, edge_order)
    return join(first, last, dim) if inner is None else join(join(first, inner, dim), last, dim)


def _uniform(x: Tensor, step: Tensor | float, dim: int, n: int) -> Any:
    return (slice_of(x, dim, 2, n) - slice_of(x, dim, 0, n - 2)) / (2.0 * step)


def _uneven(x: Tensor, h: Tensor, dim: int, n: int) -> Tensor:
    left, right = h[: n - 2], h[1 : n - 1]
    a = -right / (left * (left + right))
    b = (right - left) / (left * right)
    c = left / (right * (left + right))
    return a * slice_of(x, dim, 0, n - 2) + b * slice_of(x, dim, 1, n - 1) + c * slice_of(x, dim, 2, n)


def _edges(x: Tensor, step: Tensor | float, h: Tensor | None, dim: int, n: int, edge_order: int) -> tuple[Any, Any]:
    def at(i: int) -> Any:
        return slice_of(x, dim, i % n, i % n + 1)

    first, last = (step, step) if h is None else (h[:1], h[n - 2 : n - 1])
    if edge_order == 1:
        return (at(1) - at(0)) / first, (at(-1) - at(-2)) / last
    second, before = (step, step) if h is None else (h[1:2], h[n - 3 : n - 2])

    def one_sided(near: Tensor | float, far: Tensor | float) -> tuple[Any, Any, Any]:
        return -(2.0 * near + far) / (near * (near + far)), (near + far) / (near * far), -near / (far * (near + far))

    a, b, c = one_sided(first, second)
    d, e, f = one_sided(last, before)
    return a * at(0) + b * at(1) + c * at(2), -(d * at(-1) + e * at(-2) + f * at(-3))


@function()
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The numerical derivatives of a function given at points, one tensor for each dimension in `dim` (all by default).

    spacing: a step for all, or for each dimension a step or a 1-d tensor of coordinates. edge_order: 1 or 2.
    """
    array = raw(input)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if array.dtype == np.bool_ or array.dtype == np.uint8:
        raise RuntimeError(f"torch.gradient does not support {array.dtype} input.")
    where = (
        range(array.ndim) if dim is None else wrap_dims(dim if isinstance(dim, (list, tuple)) else (dim,), array.ndim)
    )
    if spacing is not None and dim is None and isinstance(spacing, (list, tuple)) and len(spacing) != array.ndim:
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                           f"'self.dim() = {array.ndim}', since dim argument was not given, but got a list of length "
                           f"{len(spacing)}")  # fmt: skip
    if isinstance(spacing, Tensor) and raw(spacing).ndim:
        raise TypeError("gradient() received an invalid combination of arguments: spacing must be a number, a tuple of numbers or "
                        "a tuple of Tensors, not Tensor")  # fmt: skip
    steps = spacings(spacing, len(where))
    for d, step in zip(where, steps, strict=True):
        check_step(input, step)
        if isinstance(step, Tensor) and raw(step).ndim == 1 and raw(step).shape[0] != array.shape[d]:
            raise RuntimeError(f"torch.gradient expected each element to match the input size at dimension {d}: got "
                               f"{raw(step).shape[0]} coordinates, expected {array.shape[d]}")  # fmt: skip
    return tuple(along(input, step, d, edge_order) for d, step in zip(where, steps, strict=True))
