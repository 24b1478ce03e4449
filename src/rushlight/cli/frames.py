"""Tracebacks of scripts: the user's own frames, without those of this program and of the library below them."""

from __future__ import annotations

import os
import runpy
from types import FrameType, TracebackType

from rushlight.basics.caller import PACKAGE, is_ours

__all__ = ["trim"]

# What stands around a script: this folder's modules, what runs files, and the end of a budget.
AROUND = (os.path.join(PACKAGE, "cli", ""), os.path.join(PACKAGE, "memory", "budgets", "budget.py"))
NOTE = "({} inside rushlight left out: RUSHLIGHT_TRACEBACK=full shows {})"


def trim(error: BaseException) -> str:
    """Take this program's frames from an error, and from those that led to it; the library's too, unless
    RUSHLIGHT_TRACEBACK=full is set.  A line says how many of the latter there were; "" where there were none."""
    whole = os.environ.get("RUSHLIGHT_TRACEBACK") == "full"
    seen, left_out = set[int](), 0
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        trace = _script_frames(at.__traceback__)
        at.__traceback__, count = (trace, 0) if whole else _of_user(trace)
        left_out += count
        at = at.__cause__ or at.__context__
    return NOTE.format(*(("1 frame", "it") if left_out == 1 else (f"{left_out} frames", "them"))) if left_out else ""


def _script_frames(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` from the script's first frame on; None if the script never began, or had ended."""
    first = trace
    while first is not None and _is_around(first.tb_frame):
        first = first.tb_next
    return first


def _of_user(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """``trace`` without the library's frames, and how many these were; all of it where nothing else is in it."""
    kept, count, at = list[TracebackType](), 0, trace
    while at is not None:
        if is_ours(at.tb_frame):
            count += 1
        else:
            kept.append(at)
        at = at.tb_next
    if not kept or not count:
        return trace, 0
    made: TracebackType | None = None
    for part in reversed(kept):
        made = TracebackType(made, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return made, count


def _is_around(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(AROUND) or name in (runpy.__file__, "<frozen runpy>")
