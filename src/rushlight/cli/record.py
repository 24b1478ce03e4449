"""Runs a script under the recorder, and keeps what was recorded whatever ends the script."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from rushlight.cli import run

__all__ = ["recorded", "unwritable", "written"]


class Terminated(SystemExit):
    """SIGTERM came: raised in the script, so that it ends as `sys.exit` ends it."""


def recorded(options: argparse.Namespace, job: run.Job) -> tuple[Any, int]:
    """What a script did, recorded, and its exit status: 128 and the signal's number where Ctrl-C or SIGTERM ended it."""
    from rushlight import memory

    memory.record_history(max_entries=options.max_entries)
    status = 0
    try:
        with _terminable():
            status = run.execute(options, job)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if status and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
    finally:
        if memory.is_recording():
            memory.record_history(enabled=None)
    if status in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        print(
            "rushlight memory report: the script was interrupted; what it did until then is reported", file=sys.stderr
        )
    return memory.recording(), status


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Within, SIGTERM raises an exception instead of ending the process at once; a script may set its own handler."""

    def stop(number: int, frame: Any) -> None:
        raise Terminated(128 + number)

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield  # nobody's choice but theirs
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def unwritable(path: str | None) -> str | None:
    """Why a file cannot be written, tried without changing what is there; None if it can, or is not asked for."""
    if path is None:
        return None
    new = not os.path.lexists(path)
    try:
        with open(path, "ab"):
            pass
        if new:
            os.unlink(path)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}; nothing was run. Give another path"
    return None


def written(write: Any, path: str) -> str:
    """Have `write(path)` write a file; where it cannot after all, one among the temporary files.  The path that was."""
    try:
        write(path)
        return path
    except OSError as error:
        handle, other = tempfile.mkstemp("-" + os.path.basename(path), "rushlight-")
        os.close(handle)
        print(f"rushlight memory: {path}: {error.strerror or error}; writing {other} instead", file=sys.stderr)
        write(other)
        return other
