"""What operands are made of: tensors or, in the first order of formulas, arrays."""

from __future__ import annotations

from typing import Any

from rushlight.tensor import Tensor


def raw(x: Any) -> Any:
    """The array of a tensor, for its values; anything else itself."""
    return x._array if isinstance(x, Tensor) else x


def held(x: object) -> Any:
    """The memory of a tensor, or the array itself: for its shape, strides and dtype, and for views of it."""
    return x._held if isinstance(x, Tensor) else x
