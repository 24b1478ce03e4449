"""The NumPy backend: kernels first, NumPy for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np


class NumPyBackend:
    """Names resolve to this project's kernel of that name, else to NumPy's function; each is looked up once."""

    name = "numpy"
    array = np.ndarray

    def __getattr__(self, name: str) -> Any:
        from rushlight import kernels

        found: Any = getattr(kernels, name, None) or getattr(np, name)
        self.__dict__[name] = found
        return found


backend = NumPyBackend()
