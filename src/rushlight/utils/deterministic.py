"""What `torch.use_deterministic_algorithms` does to memory that would hold anything.

`fill_uninitialized_memory` (True) says whether `torch.empty` and its like, and the elements that `resize_` adds, are then
filled: with NaN, of integers with the largest.

>>> import rushlight as torch
>>> torch.use_deterministic_algorithms(True)
>>> torch.empty(2)
tensor([nan, nan])
>>> torch.use_deterministic_algorithms(False)
"""

from __future__ import annotations

import sys
from types import ModuleType

from rushlight.dispatch.options import fills


class _Settings(ModuleType):
    """This module, whose one variable is a setting of operators."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory that would hold anything is filled while determinism is asked for."""
        return fills["uninitialized"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"fill_uninitialized_memory: expected a bool, but got {type(value).__name__}")
        fills["uninitialized"] = value


sys.modules[__name__].__class__ = _Settings
