"""``torch.utils._traceback``: where a program was, in short, and lines of code that was made of text."""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
    "shorten_filename",
]


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A path without what it shares with `base`: by default, with the folder of this package."""
    try:
        shared = os.path.commonpath([fn, base or os.path.dirname(__file__)])
    except ValueError:  # one of them is relative, or on another drive
        return fn
    return os.path.relpath(fn, shared)


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """File, number and function of a call; line: the code before."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost call of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The calls that led somewhere, the oldest first; nothing is held that they work with."""

    def __init__(self, tb: traceback.StackSummary | None, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The calls that led here, but the last `skip`; script, cpp: without effect, there is Python alone."""
        frame = inspect.currentframe()
        walked = list(traceback.walk_stack(frame.f_back if frame is not None else None))[skip:]
        return CapturedTraceback(traceback.StackSummary.extract(iter(walked[::-1]), lookup_lines=False), skip)

    def cleanup(self) -> None:
        """Let what was found go."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The calls; none after `cleanup`."""
        return traceback.StackSummary() if self.tb is None else self.tb

    def format(self) -> list[str]:
        """The calls as a traceback shows them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: list[CapturedTraceback | None]) -> list[list[str]]:
        """`format` of each; nothing of None."""
        return [[] if tb is None else tb.format() for tb in tbs]


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """A context whose errors show lines of code that was made of text, which is ``__compile_source__`` among its globals."""
    try:
        yield
    except Exception as error:  # whose traceback is changed, and which goes on
        frames, tb = [], error.__traceback__
        while tb is not None:
            frames.append(tb)
            tb = tb.tb_next
        shown: TracebackType | None = None
        for each in reversed(frames):
            source = each.tb_frame.f_globals.get("__compile_source__")
            if isinstance(source, str) and each.tb_frame.f_code.co_filename == "<string>":
                shown = TracebackType(shown, _written(each.tb_frame, source), -1, each.tb_lineno)
            else:  # changed in place: who manages contexts puts the former traceback back, of which it is the first
                each.tb_next = shown
                shown = each
        raise


def _written(frame: FrameType, source: str) -> FrameType:
    """A frame like that one, whose source lies in a file."""
    with tempfile.NamedTemporaryFile(mode="w", delete=False, suffix=".py") as file:
        file.write(source)
    code = compile("here()", file.name, "eval").replace(co_name=frame.f_code.co_name)
    made: FrameType = eval(code, {**frame.f_globals, "here": lambda: inspect.currentframe().f_back})  # type: ignore[union-attr]
    return made
