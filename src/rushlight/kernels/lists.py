"""What is done to each of several arrays, in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.kernels.dispatch import Array, native
from rushlight.kernels.native.signatures import exports
from rushlight.kernels.reference import lists as reference

__all__ = ["clamp_each", "multiply_each", "squares_of_each"]

# lists.cpp: arrays in an array of objects, how many, numbers.  Returns how many come before one that it is not for:
# of another dtype, not aligned, with gaps.
exports(squares_of_each="aan>n", multiply_each="and>n", clamp_each="andd>n")


def squares_of_each(arrays: list[Array]) -> Array:
    """The sum of squares of each array, added up in float64 beyond runs of 4,096 elements.  n x (*) -> (n) float64"""
    sums = np.empty(len(arrays))
    _each("squares_of_each", arrays, sums)
    return sums


def multiply_each(arrays: list[Array], factor: float) -> None:
    """Multiply each array in place by a number, rounded to their dtype."""
    _each("multiply_each", arrays, None, factor)


def clamp_each(arrays: list[Array], least: float, most: float) -> None:
    """Bring all elements of each array into [least, most], in place; NaN stays."""
    _each("clamp_each", arrays, None, least, most)


def _each(name: str, arrays: list[Array], sums: Array | None, *numbers: float) -> None:
    """Call the native function for as many as it takes, and the reference for the others."""
    one: Callable[..., Any] = getattr(reference, name)
    table, done = native(arrays[0].dtype) if arrays else None, 0
    objects = np.fromiter(arrays, object, len(arrays))
    while done < len(arrays):
        if table is not None:
            given = () if sums is None else (sums[done:],)
            done += getattr(table, name)(objects[done:], *given, len(arrays) - done, *numbers)
        if done < len(arrays):
            found = one(arrays[done], *numbers)
            if sums is not None:
                sums[done] = found
            done += 1
