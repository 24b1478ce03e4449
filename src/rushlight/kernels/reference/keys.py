"""The kernel of cubic interpolation by its distance x to an element, of arrays and of tensors.

Source: Keys, IEEE TASSP 29 (1981), equation 4, of which a is the slope at distance 1.
"""

from __future__ import annotations

from typing import Any


def near(x: Any, a: float) -> Any:
    """Weights at distances up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def near_slope(x: Any, a: float) -> Any:
    """The derivative of `near`."""
    return (3 * (a + 2) * x - 2 * (a + 3)) * x


def far(x: Any, a: float) -> Any:
    """Weights at distances from 1 to 2, beyond which they are 0."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def far_slope(x: Any, a: float) -> Any:
    """The derivative of `far`."""
    return (3 * a * x - 10 * a) * x + 8 * a
