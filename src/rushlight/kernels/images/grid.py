"""Between the elements of images: what grids of points look at.

Legend: N images, C channels, S input sizes, L points, D spatial dimensions (2 or 3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import BLOCK, Array, contiguous, is_half, native, rounded, widened
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import gather as reference

__all__ = ["grid_sample", "grid_sample_backward"]

exports(
    # grid.cpp: images, positions, result; N, C, L, D, three sizes, elements looked at, padding, whether corners are aligned
    grid_sample="aaa" + "nnnnnnnnnn",
    # gradient, images or None, positions, gradients or None of both; the same
    grid_sample_backward="aaaaa" + "nnnnnnnnnn",
)

MODES = {"nearest": 1, "bilinear": 2, "bicubic": 4}  # elements that a point looks at in each dimension
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
How = tuple[str, str, bool]  # mode, padding, whether corners are aligned
Maybe = Array | None


def _grid(input_shape: tuple[int, ...], where: Array, how: How) -> tuple[int, ...]:
    n, c, *spatial = input_shape
    sizes = n, c, where.shape[2], len(spatial), *(1,) * (3 - len(spatial)), *spatial
    return *sizes, MODES[how[0]], PADDINGS[how[1]], int(how[2])


def _takes(x: Array, where: Array, plane: int) -> bool:
    return x.dtype == where.dtype and where.size > 0 and plane < 1 << 31


def grid_sample(x: Array, where: Array, how: How = ("bilinear", "zeros", False)) -> Array:
    """Interpolation of the elements around each point; those outside count as 0.

    x: (N, C, *S), where: (D, N, L) positions counted in elements, the first for the first of S -> (N, C, L) of the dtype of x
    how: "nearest" (ties to even), "bilinear" or, of images, "bicubic"; for this how elements outside are moved inside ("border",
    "reflection"), and whether they are reflected at centres of elements.
    Images of 16 bits, whose positions are float32, become float32 a few at a time.
    """
    out = np.empty((*x.shape[:2], where.shape[2]), x.dtype)
    if is_half(x.dtype):
        for some in _images_at_a_time(x.shape, out):
            rounded(grid_sample(widened(x[some]), _wide(where[:, some]), how), x.dtype, out[some])
        return out
    table = native(x.dtype)
    if table is None or not _takes(x, where, math.prod(x.shape[2:])):
        return np.asarray(reference.grid_sample(x, where, how), x.dtype)
    table.grid_sample(contiguous(x), contiguous(where), out, *_grid(x.shape, where, how))
    return out


def grid_sample_backward(
    g: Array,
    x: Maybe,
    where: Array,
    shape: tuple[int, ...],
    needs: tuple[bool, bool],
    how: How = ("bilinear", "zeros", False),
) -> tuple[Maybe, Maybe]:
    """The gradients of both, where they are wanted.  g: (N, C, L), x: None unless that of the points is wanted; shape: of x"""
    if how[0] == "nearest" and needs[1]:  # which points do not change
        return grid_sample_backward(g, None, where, shape, (needs[0], False), how)[0], np.zeros_like(where)
    if is_half(g.dtype):
        return _backward_of_halves(g, x, where, shape, needs, how)
    table = native(g.dtype)
    if table is None or not _takes(g, where, math.prod(shape[2:])):
        return reference.grid_sample_backward(g, x, where, shape, needs, how)
    of_x = np.empty(shape, g.dtype) if needs[0] else None
    of_where = np.empty(where.shape, g.dtype) if needs[1] else None
    given = None if x is None else contiguous(x)
    table.grid_sample_backward(contiguous(g), given, contiguous(where), of_x, of_where, *_grid(shape, where, how))
    return of_x, of_where


def _backward_of_halves(
    g: Array, x: Maybe, where: Array, shape: tuple[int, ...], needs: tuple[bool, bool], how: How
) -> tuple[Maybe, Maybe]:
    of_x = np.empty(shape, g.dtype) if needs[0] else None
    of_where = np.empty(where.shape, where.dtype) if needs[1] else None
    for some in _images_at_a_time(shape, g):
        given = None if x is None else widened(x[some])
        sizes = (len(g[some]), *shape[1:])
        part, points = grid_sample_backward(widened(g[some]), given, _wide(where[:, some]), sizes, needs, how)
        if of_x is not None and part is not None:
            rounded(part, of_x.dtype, of_x[some])
        if of_where is not None:
            of_where[:, some] = points
    return of_x, of_where


def _images_at_a_time(shape: tuple[int, ...], points: Array) -> list[slice]:
    """Images, some at a time, so that float32 copies of them, or of what lies at their points (N, C, L), are small."""
    some = _at_a_time(shape, points.shape)
    return [slice(i, i + some) for i in range(0, shape[0], some)]


def _at_a_time(shape: tuple[int, ...], points: tuple[int, ...]) -> int:
    return max(BLOCK // max(math.prod(shape[1:]), math.prod(points[1:]), 1), 1)


def working_bytes(shape: tuple[int, ...], points: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Bytes that a kernel takes of images (N, C, *S) of 16 bits and what lies at points (N, C, L) while they are float32."""
    some = min(_at_a_time(shape, points), shape[0]) if dtype.itemsize == 2 else 0
    return 4 * some * (math.prod(shape[1:]) + math.prod(points[1:]))


def _wide(where: Array) -> Array:
    return widened(where) if is_half(where.dtype) else where
