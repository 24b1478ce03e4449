"""Products of numbers of 8 and 4 bits, scaled block by block: names that packages import."""

from __future__ import annotations

from enum import Enum
from typing import NoReturn

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]

_WHY = "of products of scaled matrices torch._scaled_mm is here, with a scale for the whole or for each row"


class ScalingType(Enum):
    """How many elements have a scale in common."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """In which order scales lie."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def scaled_mm(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"torch.nn.functional.scaled_mm: {_WHY}")


def scaled_grouped_mm(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(f"torch.nn.functional.scaled_grouped_mm: {_WHY}")
