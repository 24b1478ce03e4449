"""``torch._guards``: what a compiler is doing, which nothing here is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode", "tracing"]


class TracingContext:
    """What a compiler knows of the program that it follows.  Nothing is compiled here: there is none."""

    def __init__(self, fake_mode: object) -> None:
        self.fake_mode = fake_mode

    @staticmethod
    def try_get() -> None:
        """The one that is in use: None."""

    @staticmethod
    def get() -> TracingContext:
        """The one that is in use.  Raises RuntimeError: there is none."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


@contextlib.contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """A block in which a compiler follows what runs, with this context: nothing follows."""
    yield context


def active_fake_mode() -> None:
    """The mode of tensors without memory: none; they are on the device meta."""


def detect_fake_mode(inputs: object = None) -> None:
    """The mode that inputs were made in: none."""
