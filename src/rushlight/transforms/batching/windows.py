"""Operators whose first dimension runs over images: the samples are folded into it."""

from __future__ import annotations

from rushlight.dispatch import families
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results, each, reshaped


def folded(c: Given, x: Tensor, i: int) -> Tensor:
    """Input `i` with the samples folded into its first dimension."""
    shape = c.shapes[i]
    return reshaped(x, (c.size * shape[0], *shape[1:]))


def unfolded(c: Given, t: Tensor) -> Tensor:
    """A result with the samples apart again."""
    shape = tuple(t.shape)
    return reshaped(t, (c.size, shape[0] // max(c.size, 1), *shape[1:]))


@families.images.batched
def images(c: Given) -> Results:
    """Every input and result begins with the dimension of images."""
    values = [folded(c, x, i) for i, x in enumerate(c.every())]
    statics = c.statics
    if c.has("size") and isinstance(c["size"], (tuple, list)):
        size = tuple(c["size"])
        statics = c.changed(size=(c.size * size[0], *size[1:]))
    return each(c.run(values, statics), lambda t: unfolded(c, t))
