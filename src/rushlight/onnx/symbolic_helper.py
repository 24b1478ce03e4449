"""Decorators of functions that say how operators are exported: they return their function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["parse_args", "quantized_args"]

Function = TypeVar("Function")


def parse_args(*arg_descriptors: str) -> Callable[[Function], Function]:
    """A decorator that returns its function."""
    return lambda function: function


def quantized_args(*arg_q_descriptors: bool) -> Callable[[Function], Function]:
    """A decorator that returns its function."""
    return lambda function: function
