"""Size: a tensor's shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex

import numpy as np


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as PyTorch's and knows its number of elements.

    >>> import rushlight as torch
    >>> torch.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        """The sizes as integers: a tensor of one gives its value.  TypeError for what is no integer."""
        given = tuple(sizes)
        for size in given:
            if size.__class__ is not int:
                return tuple.__new__(cls, map(integer, range(len(given)), given))
        return tuple.__new__(cls, given)

    def numel(self) -> int:
        """The product of the sizes."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: object) -> Any:
        """The sizes of both; TypeError for what is no tuple, as a list is none."""
        if isinstance(other, tuple):
            return Size(tuple.__add__(self, other))
        if hasattr(type(other), "__radd__"):
            return NotImplemented
        raise TypeError(
            f"can only concatenate tuple (not {type(other).__name__}) to torch.Size: tuple() of it can be added"
        )

    def __radd__(self, other: object) -> Any:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n: Any) -> Any:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__


def integer(place: int, size: Any) -> int:
    """One of the sizes of a shape; NumPy's integers stay what they are.  TypeError for what is no integer."""
    if isinstance(size, (int, np.integer)):
        return size  # type: ignore[return-value]
    try:
        return index(size)
    except TypeError:
        if getattr(size, "stands_for_sizes", False):  # of a nested tensor: see `nested.ragged`
            return size  # type: ignore[no-any-return]
        raise TypeError(
            f"torch.Size: expected integers, but item {place} is a {type(size).__name__}: int() of it is one"
        ) from None
