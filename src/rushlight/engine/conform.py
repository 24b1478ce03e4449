"""Gradients made to fit: shape, dtype, sums, ownership.  Arrays here; tensors through functions that `ops` provides."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from rushlight.basics.dtypes import is_complex, is_complex_half, real_of
from rushlight.basics.eights import refuse
from rushlight.basics.references import HELD
from rushlight.basics.state import modes
from rushlight.engine.deferred import Deferred
from rushlight.engine.rows import Rows
from rushlight.kernels.dispatch import recast
from rushlight.kernels.sums import add_up
from rushlight.storage import Reshaped
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.engine.node import Node, Port

ndarray = np.ndarray
# What a run of arrays carries; and what it, or one of tensors, hands to a node: of several outputs a list.
Gradient: TypeAlias = "Array | Deferred | Part | Rows"
Grads: TypeAlias = "Gradient | Tensor | list[Any] | None"
# sum_to_size, cast, add, resize, sparse, sparse_total: set by ops, which is on a higher floor
tensor_functions: dict[str, Any] = {}


def reduce_axes(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of `shape` over which a gradient is summed to have been broadcast from `target`."""
    lead = len(shape) - len(target)
    axes = [i + lead for i, n in enumerate(target) if n == 1 and shape[i + lead] != 1]
    return (*range(lead), *axes)


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `target` broadcasts to `shape`."""
    lead = len(shape) - len(target)
    return lead >= 0 and all(n in (1, shape[i + lead]) for i, n in enumerate(target))


def expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `target`."""
    return fits(target, shape)


def mismatch(edge: Tensor, got: list[Any], expected: list[Any], what: str) -> RuntimeError:
    """The error for a gradient that cannot be made to fit."""
    name = edge.name() if hasattr(edge, "name") and callable(edge.name) else "a leaf"
    return RuntimeError(f"a backward returned an invalid gradient for {name}: got {what} {got}, expected {expected}")


def check_shape(edge: Node | Port | Tensor) -> None:
    """Raise RuntimeError for a leaf that `.data` gave another shape after an operator in this run had used it.

    What fits the shape that it has now would be summed or repeated as if it had been broadcast.
    """
    storage = edge._storage if isinstance(edge, Tensor) else None
    if not isinstance(storage, Reshaped) or modes.run is None:
        return
    for node in modes.run.records:
        if not isinstance(node, Tensor) and node.seq < storage.since and any(e is edge for e in node.edges):
            raise RuntimeError(
                f"a backward returned an invalid gradient for a leaf: `.data` gave it the shape {list(edge.shape)} after "
                f"{node.name()} had used it with another. Assign `.data` of another shape after backward, or before forward"
            )


@final
class Part:
    """The gradient of one region of an array, zero elsewhere: what slicing gives to its input.

    It becomes an array when it arrives first; from then on the engine adds the region alone, so that a loop over slices
    costs as much as their sizes and not the whole each time.
    """

    __slots__ = ("dtype", "index", "region", "shape")

    def __init__(self, shape: tuple[int, ...], index: tuple[Any, ...], region: Array):
        self.shape, self.index, self.region, self.dtype = shape, index, region, region.dtype

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        whole = np.zeros(self.shape, self.dtype)
        whole[self.index] = self.region
        return whole

    def into(self, whole: Array) -> Array:
        """Add it to an array of its shape in place."""
        whole[self.index] += self.region
        return whole


def conform_array(g: Any, edge: Any, shape: tuple[int, ...], dtype: np.dtype[Any], first: bool = True) -> Any:
    """`g` summed over broadcast dimensions to `shape` and cast to `dtype`.

    A `Part` remains one unless it is the first, and `Rows` where they come to a leaf.
    """
    if g.__class__ is not ndarray:
        if g.__class__ is Part and not first and g.shape == shape and g.dtype == dtype:
            return g
        if g.__class__ is Rows and isinstance(edge, Tensor) and g.shape == shape and g.dtype == dtype:
            return g
        if isinstance(g, Deferred):
            g = g.arriving(edge, first)
            if g.__class__ is not ndarray:
                return g
        g = np.asarray(g)
    if g.shape != shape:
        check_shape(edge)
        if fits(g.shape, shape):
            total = np.float32 if g.dtype.itemsize == 2 else None
            g = g.astype(np.complex64) if is_complex_half(g.dtype) else g
            g = add_up(g, tuple(reduce_axes(g.shape, shape)), True, total)
            g = g.reshape(shape)
        elif expands(g.shape, shape):
            g = np.broadcast_to(g, shape)
        else:
            raise mismatch(edge, list(g.shape), list(shape), "shape")
    if g.dtype != dtype:
        g = cast_array(g, dtype)
    return g


def cast_array(a: Array, dtype: np.dtype[Any]) -> Array:
    """`a` in `dtype`: of complex numbers, the real part where `dtype` is real."""
    if is_complex(a.dtype) and not is_complex(dtype) and dtype.kind != "b":
        a = real_of(a)
    return recast(a, dtype)


class Holders:
    """How many references to an array exist, along the engine's own path, when nobody else holds it.

    The number depends on the Python version, so it is found by experiment at import (see `engine.run.calibrate`).
    """

    buffer = 0  # in `add_arrays`, of a buffer that only a record holds
    node = 0  # in a method that `Node.run` calls with the gradient that arrived
    leaf = 0  # in `accumulate.owned_copy`, of a gradient that only the run holds


def is_dense(a: Array) -> bool:
    """Whether `a` fills its memory without gaps or overlap."""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return True
    order = sorted(range(a.ndim), key=lambda i: (a.strides[i], a.shape[i]))
    step = a.itemsize
    for i in order:
        if a.shape[i] == 1:
            continue
        if a.strides[i] != step:
            return False
        step *= a.shape[i]
    return True


def owns_memory(g: Array) -> bool:
    """Whether `g` is the only array on its memory, or the only view of an array of the same bytes, each of which it has once."""
    base = g.base
    if base is None:
        return True
    whole = base.__class__ is ndarray and base.base is None and base.nbytes == g.nbytes
    return whole and getrefcount(base) <= HELD and is_dense(g)  # one that repeats a part of it has as many bytes, too


def add_arrays(total: Any, g: Any) -> Any:
    """total + g, in place where only the run holds `total`.  Raises NotImplementedError for numbers of 8 bits."""
    if total.dtype.itemsize == 1:
        refuse("add", total.dtype)
    if getrefcount(total) <= Holders.buffer and owns_memory(total) and total.flags.writeable:
        if g.__class__ is not ndarray:
            return g.into(total)
        total += g
        return total
    return total.plus(g) if total.__class__ is Rows else np.asarray(total + np.asarray(g))


def add_tensors(total: Tensor, g: Tensor) -> Tensor:
    """total + g, recorded; sparse where both are."""
    if Rows.sparse and (total.is_sparse or g.is_sparse):
        return total + g if total.is_sparse and g.is_sparse else dense(total) + dense(g)
    return tensor_functions["add"](total, g)  # type: ignore[no-any-return]


def dense(g: Tensor) -> Tensor:
    """A gradient that may be sparse, with all its elements."""
    return g.to_dense() if Rows.sparse and g.is_sparse else g


def conform_tensor(g: Tensor, edge: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
    """As `conform_array`, recorded; a sparse tensor remains one where it comes to a leaf as it is."""
    have = g._array.shape
    if Rows.sparse and g.is_sparse and not (isinstance(edge, Tensor) and have == shape and g._array.dtype == dtype):
        g = g.to_dense()
    if have != shape:
        check_shape(edge)
        if fits(have, shape):
            g = tensor_functions["sum_to_size"](g, shape)
        elif expands(have, shape):
            g = tensor_functions["expand"](g, shape)
        else:
            raise mismatch(edge, list(have), list(shape), "shape")
    if g._array.dtype != dtype:
        g = tensor_functions["cast"](g, dtype)
    return g
