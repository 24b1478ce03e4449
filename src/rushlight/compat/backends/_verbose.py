"""Context managers that would have a library print what it is called with."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Self

__all__ = ["Verbose"]


class Verbose:
    """Of a library that is not used.  library: its name; asked: what was given, 0 for nothing to print.

    Raises AssertionError when it is entered, as PyTorch does where it was built without the library.
    """

    library = ""
    asked: int

    def __enter__(self) -> Self:
        if self.asked != 0:
            raise AssertionError(
                f"Failed to set {self.library} into verbose mode. Please consider to disable this verbose scope."
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        return False
