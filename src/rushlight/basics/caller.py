"""Whose code is running: the frame of the user's line, and warnings that name it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

settings = {"always": False}  # whether warnings come each time: `torch.set_warn_always`
_said: set[str] = set()  # the messages of `warn_once` so far
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_frame() -> Any:
    """The innermost frame outside this package, or None."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def is_ours(frame: Any) -> bool:
    """Whether a frame is of this package, or of a function that it wrote and compiled."""
    name = frame.f_code.co_filename
    if name[0] != "<":
        return bool(name.startswith(PACKAGE))
    return not name.startswith("<doctest") and str(frame.f_globals.get("__name__")).startswith("rushlight.")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many calls of this package lie between."""
    frame = user_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    scope = frame.f_globals
    seen = None if settings["always"] else scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, scope.get("__name__") or "<string>",
                           seen)  # fmt: skip


def warn_once(message: str, category: type[Warning] = UserWarning) -> None:
    """As `warn`, for what is said once in a process, wherever it was, unless `torch.set_warn_always(True)`."""
    if message not in _said or settings["always"]:
        _said.add(message)
        warn(message, category)


def line() -> str:
    """The user's line as FILE:LINE, "?" where there is none."""
    frame = user_frame()
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
