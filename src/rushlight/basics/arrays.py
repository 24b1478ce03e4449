"""The type of raw arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Array"]

Array = np.ndarray[Any, np.dtype[Any]]
