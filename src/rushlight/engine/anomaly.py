"""Anomaly mode: where operators were called, and a check of every gradient."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.state import Setting, modes

PACKAGE = str(Path(__file__).parents[1]) + os.sep


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


def user_line() -> str:
    """file:line of the user's code that is running."""
    frame = user_frame()
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_trace() -> str:
    """The user's part of the call stack as text."""
    frame = user_frame()
    return "" if frame is None else "".join(traceback.format_stack(frame, limit=16))


class Settings:
    """What anomaly mode checks."""

    __slots__ = ("check_nan",)

    def __init__(self, check_nan: bool):
        self.check_nan = check_nan


def note(node: Any) -> None:
    """Remember where a node's operator was called."""
    node.extras().traceback = user_trace()
    if modes.node is not None:
        node.extras().metadata["parent"] = modes.node


def explain(node: Any) -> str:
    """Where the forward call of a node was, and of the node whose backward recorded it."""
    text, seen = "", 0
    while node is not None and seen < 16:
        trace = node.extra.traceback if node.extra is not None else None
        if trace is None:
            return text + f"\nNo forward pass information is available for {node.name()}: enable anomaly detection " \
                "during the forward pass."  # fmt: skip
        text += f"\nTraceback of forward call that caused the error in {node.name()}:\n{trace}"
        node, seen = node.extra.metadata.get("parent"), seen + 1
    return text


def watched(node: Any, g: Any, mask: int, create: bool) -> Any:
    """Run a node under anomaly mode: errors carry the traceback of the forward call, NaN gradients are errors."""
    try:
        with Setting("node", node):
            grads = node.run_tensors(g, mask) if create else node.run(g, mask)
    except Exception as error:
        error.args = (f"{error.args[0] if error.args else error}{explain(node)}", *error.args[1:])
        raise
    if modes.anomaly.check_nan and grads is not None:
        for i, x in enumerate(grads):
            array = getattr(x, "_array", x)
            if array is not None and np.isnan(array).any():
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.{explain(node)}")
    return grads
