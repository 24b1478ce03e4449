"""What operands are made of: tensors or, in the first order of formulas, arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics.foreign import kind_of
from rushlight.tensor import Tensor


def raw(x: Any) -> Any:
    """The array of a tensor, for its values; anything else itself."""
    return x._array if isinstance(x, Tensor) else x


def held(x: object) -> Any:
    """The memory of a tensor, or the array itself: for its shape, strides and dtype, and for views of it."""
    return x._held if isinstance(x, Tensor) else x


def check_tensor(name: str, argument: str, x: object, position: int = 0) -> None:
    """Raise TypeError for what is no tensor.  position: of the argument, from 1, where PyTorch's words have it."""
    if not isinstance(x, Tensor):
        where = f" (position {position})" if position else ""
        raise TypeError(f"{name}(): argument '{argument}'{where} must be Tensor, not {kind_of(x)}")


def one_number(name: str, argument: str, value: Any) -> Any:
    """A number of Python, also of one of NumPy or a tensor without dimensions.  Raises TypeError for other tensors."""
    if not isinstance(value, Tensor):
        return value.item() if isinstance(value, np.generic) else value
    if raw(value).ndim:
        raise TypeError(f"{name}(): argument '{argument}' must be float, not Tensor")
    return value.item()
