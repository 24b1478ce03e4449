"""Creating tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.ops.registry import function
from rushlight.tensor import Tensor, wrap


@function()
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a NumPy array.  Raises TypeError for other objects and unsupported dtypes."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of(ndarray.dtype)
    return wrap(np.asarray(ndarray))
