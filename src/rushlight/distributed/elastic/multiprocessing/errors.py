"""Errors of processes that were started: none are started here."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["ChildFailedError", "record"]

Function = TypeVar("Function")


class ChildFailedError(Exception):
    """What PyTorch raises where a process that it started has failed: never raised."""


def record(fn: Function, error_handler: Any = None) -> Function:
    """`fn` as it is: an error in it is the process's own."""
    return fn
