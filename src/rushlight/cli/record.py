"""Runs a script under the recorder, and keeps what was recorded whatever ends the script."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.cli import run
from rushlight.cli.interrupts import handled

__all__ = ["leaving", "recorded", "stopped", "summed_up", "unwritable", "written"]

ADVISED = 200_000  # events: of a longer recording the page alone has advice, for it takes a while to find


class Terminated(SystemExit):
    """SIGTERM came, or the terminal went: raised in the script, so that it ends as `sys.exit` ends it."""


def recorded(options: argparse.Namespace, job: run.Job) -> int:
    """Run a script under the recorder; its exit status: 128 and the signal's number where Ctrl-C or SIGTERM ended it."""
    from rushlight import memory

    memory.record_history(max_entries=options.max_entries)
    try:
        with handled(terminate, signal.SIGTERM, signal.SIGHUP, unless_set=True), feeding(options):
            return run.execute(options, job)
    except SystemExit as stop:
        if stop.code and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:  # between two lines of this program
        return 128 + signal.SIGINT


def stopped(status: int) -> Any:
    """What was recorded of a script that ended so."""
    from rushlight import memory

    if memory.is_recording():
        memory.record_history(enabled=None)
    if status in ENDED_BY:
        print(
            "rushlight memory report: the script was interrupted; what it did until then is reported", file=sys.stderr
        )
    return memory.recording()


ENDED_BY = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def terminate(number: int, frame: object) -> None:
    """End the script as `sys.exit` does."""
    raise Terminated(128 + number)


@contextlib.contextmanager
def feeding(options: argparse.Namespace) -> Iterator[None]:
    """Within, samples go to who watches, if somebody does: through the descriptor that `--feed` names."""
    if options.feed is None:
        yield
        return
    from rushlight.memory.recordings import recorder
    from rushlight.memory.watching.feed import Feed

    assert recorder._active is not None
    feed = Feed(recorder._active, os.fdopen(options.feed, "wb"), options.every)
    feed.start()
    try:
        yield
    finally:
        feed.stop()


@contextlib.contextmanager
def leaving(finish: Callable[[int], int]) -> Iterator[None]:
    """Within, `os._exit` in this process finishes first: it would lose what was recorded."""
    leave, process = os._exit, os.getpid()

    def ended(status: int) -> Any:
        os._exit = leave
        if os.getpid() == process:
            status = finish(status)
            sys.stdout.flush()
        leave(status)

    os._exit = ended
    try:
        yield
    finally:
        os._exit = leave


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


def summed_up(recording: Any, path: str) -> None:
    """Say on standard error what a page says first, and where it is."""
    from rushlight.memory import advise
    from rushlight.memory.counting.units import size
    from rushlight.memory.recordings.replay import breakdown, settled
    from rushlight.memory.reports.reports import when

    if not len(recording.size):
        print("nothing was allocated while the script ran: no tensor and no array", file=sys.stderr)
    else:
        kept = settled(recording)
        at_peak = breakdown(kept)
        largest, most = next(iter(at_peak.categories.items()))
        where = when(kept, at_peak.moment)
        print(
            f"peak {size(at_peak.total)} {where}, most of it {largest.replace('_', ' ')}, {size(most)}", file=sys.stderr
        )
    for item in advise(recording)[:1] if len(recording.time) <= ADVISED else ():
        print(f"what would lower it most: {item.title}, {item.gain}", file=sys.stderr)
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB; open it in a browser", file=sys.stderr)
