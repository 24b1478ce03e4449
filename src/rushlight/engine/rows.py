"""The gradient of a table of which few rows were looked up: those rows alone, with their places."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from rushlight.basics.arrays import Array


@final
class Rows:
    """A gradient that is zero but at some places: what `sparse=True` and custom functions give to a leaf.

    It remains one on its way to a leaf, whose `.grad` is then a sparse tensor; for anything else it becomes an array.
    indices: int64 (sparse dimensions, N); values: (N, *dense dimensions); places may occur several times.
    """

    __slots__ = ("dtype", "indices", "shape", "values")
    base: ClassVar[Any] = True  # as of an array on another's memory: never added to in place
    sparse: ClassVar[bool] = False  # whether this process has had a sparse tensor: else nobody need look for one
    composed: ClassVar[bool] = False  # whether it has had any tensor that is an object of others: sparse or nested

    def __init__(self, shape: tuple[int, ...], indices: Array, values: Array):
        self.shape, self.indices, self.values, self.dtype = tuple(shape), indices, values, values.dtype

    def into(self, whole: Array) -> Array:
        """Add it to an array of its shape in place."""
        if len(self.indices):
            np.add.at(whole, tuple(self.indices), self.values)
        else:  # of no sparse dimensions: everything is one place
            whole += self.values.sum(0)
        return whole

    def plus(self, other: Array | Rows) -> Array | Rows:
        """The sum with another gradient: of two of this kind again one."""
        if other.__class__ is Rows:
            places = np.concatenate([self.indices, other.indices], 1)
            return Rows(self.shape, places, np.concatenate([self.values, other.values]))
        return self.into(np.array(other))

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        return self.into(np.zeros(self.shape, self.dtype))
