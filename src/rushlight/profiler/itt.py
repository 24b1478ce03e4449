"""Ranges and marks for Intel's VTune, by the package ittapi."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType

from rushlight.basics.errors import explained


def is_available() -> bool:
    """Whether the package ittapi is installed."""
    return importlib.util.find_spec("ittapi") is not None


def _module() -> ModuleType:
    try:
        return importlib.import_module("ittapi")
    except ImportError as error:
        raise explained(ImportError("torch.profiler.itt needs the package ittapi: pip install 'rushlight[ittapi]'",
                          name="ittapi"), "missing-extra") from error  # fmt: skip


def range_push(msg: str) -> None:
    """Open a range.  Raises ImportError without the package ittapi."""
    module = _module()
    module.task_begin(module.domain("rushlight"), module.string_handle(msg))


def range_pop() -> None:
    """Close the innermost range."""
    module = _module()
    module.task_end(module.domain("rushlight"))


def mark(msg: str) -> None:
    """A range without length."""
    range_push(msg)
    range_pop()


@contextlib.contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range around a block; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
