"""``torch.autograd._functions.tensor``: an older way to give a tensor another shape."""

from __future__ import annotations

import math
from typing import Any

from rushlight.autograd.function import Function
from rushlight.tensor import Tensor

__all__ = ["Resize"]


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: the elements in another shape, a view where strides allow it.

    Raises RuntimeError where the number of elements would change.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Any:
        sizes, shape = tuple(sizes), tuple(tensor.shape)
        if math.prod(sizes) != math.prod(shape):
            asked, given = ("x".join(map(str, s)) for s in (sizes, shape))
            raise RuntimeError(
                f"requested resize to {asked} ({math.prod(sizes)} elements in total) of a tensor of {given} ({math.prod(shape)}): "
                "Resize gives all elements another shape, and none away"
            )
        ctx.shape = shape
        return tensor.reshape(sizes)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.contiguous().view(ctx.shape), None
