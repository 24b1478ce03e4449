"""The type of raw arrays."""

from typing import Any

import numpy as np

__all__ = ["Array"]

Array = np.ndarray[Any, np.dtype[Any]]
