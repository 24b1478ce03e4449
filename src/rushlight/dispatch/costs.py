"""What a call of an operator costs in floating-point operations, a multiplication and an addition being two.

A rule is asked as those for shapes are, of what has shapes: tensors, arrays, or stand-ins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.tensor import Tensor

__all__ = ["Counted", "elements", "product"]


class Counted(NamedTuple):
    """The names by which PyTorch's counter of operations knows an operator and its backward.

    alone: its name where there is nothing to add to the product.
    times: what the backward costs, in calls; None: as much as the call for each gradient of an input that the cost asks for.
    """

    forward: str
    backward: str
    times: float | None = None
    alone: str = ""


def elements(input: Tensor | Array | complex, other: Tensor | Array | complex) -> int:
    """One operation for each element of the larger operand."""
    return max(int(math.prod(getattr(x, "shape", ()))) for x in (input, other))


def product(input: Tensor | Array, mat2: Tensor | Array) -> int:
    """Of matrices over broadcast leading dimensions: (*, M, K) with (*, K, N)."""
    a, b = tuple(input.shape), tuple(mat2.shape)
    return int(2 * math.prod(np.broadcast_shapes(a[:-2], b[:-2])) * a[-2] * a[-1] * b[-1])
