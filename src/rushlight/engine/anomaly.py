"""Anomaly mode: where operators were called, and a check of every gradient."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.caller import PACKAGE, is_ours, user_frame
from rushlight.basics.state import Setting, modes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from rushlight.basics.arrays import Array
    from rushlight.engine.node import Node


LAUNCHER = os.path.join(PACKAGE, "cli", "")  # what runs a script


def user_line() -> str:
    """file:line of the user's code that is running."""
    frame = user_frame()
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_trace() -> str:
    """The user's part of the call stack as text: neither this package's own calls nor the program that runs a script."""
    import traceback  # here: few ever ask

    found = traceback.StackSummary.extract(islice(users(user_frame()), 16))
    return "".join(traceback.format_list(found[::-1]))


def users(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """Of a frame and those that led to it the user's, with their lines, innermost first."""
    while frame is not None and not frame.f_code.co_filename.startswith(LAUNCHER):
        if not is_ours(frame):
            yield frame, frame.f_lineno
        frame = frame.f_back


class Settings:
    """What anomaly mode checks."""

    __slots__ = ("check_inf", "check_nan")

    def __init__(self, check_nan: bool, check_inf: bool = False):
        self.check_nan, self.check_inf = check_nan, check_inf


def note(node: Node) -> None:
    """Remember where a node's operator was called, and in whose backward."""
    extra = node.extras()
    extra.traceback = user_trace()
    extra.metadata["traceback_"] = extra.traceback.splitlines(keepends=True)
    if modes.node is not None:
        extra.metadata["parent_"] = modes.node


def explain(node: Node) -> str:
    """Where the forward call of a node was, and of the node whose backward recorded it, and so on."""
    text, seen = "", 0
    while node is not None and seen < 16:
        trace = node.extra.traceback if node.extra is not None else None
        if trace is None:
            return text + f"\nNo forward pass information is available for {node.name()}: enable anomaly detection " \
                "during the forward pass."  # fmt: skip
        start = (
            "Traceback of forward call that caused the error in" if not seen else "It was recorded in the backward of"
        )
        text += f"\n{start} {node.name()}:\n{trace}"
        node, seen = node.extra.metadata.get("parent_"), seen + 1
    return text


def watched(node: Node, g: Array, mask: int, create: bool) -> Sequence[Any]:
    """Run a node under anomaly mode: errors carry the traceback of the forward call, NaN gradients are errors."""
    try:
        with Setting("node", node):
            grads = node.run_tensors(g, mask) if create else node.run(g, mask)
    except Exception as error:
        tell(error, explain(node))
        raise
    settings = modes.anomaly
    if grads is not None and settings is not None:
        for word, wanted, check in (("nan", settings.check_nan, np.isnan), ("inf", settings.check_inf, np.isinf)):
            for i, x in enumerate(grads) if wanted else ():
                refuse(node, g, i, x, word, check)
    return grads


def tell(error: Exception, text: str) -> None:
    """Put text at the end of an error's message; of errors that have no plain message, among its notes."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (error.args[0] + text,)
    else:
        error.add_note(text)


def values_of(x: Any) -> Array | None:
    """A gradient as an array; None where there is none, or none of floating-point numbers."""
    array = getattr(x, "_array", x)
    while getattr(array, "interpreted", False):  # inside vmap: all samples
        array = array.tensor._array
    array = None if array is None else np.asarray(array)
    return None if array is None or array.dtype.kind in "biu" else array


def refuse(node: Node, g: Array, i: int, x: Array, word: str, check: np.ufunc) -> None:
    """Raise RuntimeError if gradient `i` that a node computed has values for which `check` is true."""
    array = values_of(x)
    if array is None:
        return
    bad = check(array)
    if not bad.any():
        return
    first = [int(k) for k in np.argwhere(bad)[0]]
    arrived = [a for a in map(values_of, g if isinstance(g, (list, tuple)) else [g]) if a is not None]
    shapes = ", ".join(str(list(a.shape)) for a in arrived)
    before = " that had them already" if any(check(a).any() for a in arrived) else ""
    argument = f" (argument {node.argument(i)!r})" if hasattr(node, "argument") else ""
    raise RuntimeError(
        f"Function '{node.name()}' returned {word} values in its {i}th output{argument}, of shape {list(array.shape)}: "
        f"{int(bad.sum())} of {array.size}, the first at {first}. It was given gradients of shape {shapes}{before}."
        f"{explain(node)}"
    )
