"""Memory seen with other strides: each sample lies in memory of its own, one behind another."""

from __future__ import annotations

import math
from typing import Any

from rushlight.ops.batching import rule
from rushlight.ops.batching.given import Given
from rushlight.ops.convert import copy
from rushlight.ops.formats import contiguous_format
from rushlight.tensor import Tensor


def packed(x: Any) -> Any:
    """A tensor whose elements lie in C order."""
    return copy(x, contiguous_format) if isinstance(x, Tensor) and not x._array.flags.c_contiguous else x


@rule("as_strided as_strided_read as_strided_scatter as_strided_adjoint")
def strided(c: Given) -> Any:
    """Views by strides, and their adjoints."""
    shape = tuple(c["shape"]) if c.has("shape") else c.shapes[0]
    n = math.prod(shape)
    changes = {"size": (c.size, *c["size"]), "stride": (n, *c["stride"]), "own": (n, *c["own"])}
    if c.has("shape"):
        changes["shape"] = (c.size, *shape)
    return c.run([packed(x) for x in c.every()], c.changed(**changes))


@rule("view_as_complex")
def complex_view(c: Given) -> Any:
    """Pairs in the last dimension, which must be neighbours in memory."""
    x = c.values[0]
    return c.run([x if x._array.strides[-1] == x._array.itemsize else packed(x)])


@rule("clone")
def cloned(c: Given) -> Any:
    """A copy; the memory format is that of the samples together."""
    return c.run(c.values, (None,))
