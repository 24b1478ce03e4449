"""``rushlight memory watch``: what a program has in memory, drawn in the terminal while it runs, and the report at its end.

A script runs as `rushlight memory report` in a process of its own, which sends samples through a pipe.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.cli import run
from rushlight.cli.interrupts import SIGNALS, handled
from rushlight.cli.parsers import Parser, count
from rushlight.cli.record import summed_up, unwritable, written

__all__ = ["main"]

EPILOG = """examples:
  rushlight memory watch train.py --epochs 3
  rushlight memory watch -o vit.html train.py     the report that is written at the end
  rushlight memory watch --attach 4711            a process that called rushlight.memory.allow_watch(),
                                                  or was started by rushlight run --watchable train.py

With `pip install rich` it is a picture; without, and where there is no terminal, it is lines.
Ctrl-C ends the script, or the watching of a process that goes on without it; the report is written in both cases.
"""


def main(argv: Sequence[str]) -> int:
    """Watch what `argv` says and return the exit status."""
    parser = _parser()
    words = list(argv)
    own, job = run.split(words, parser)
    options = parser.parse_args(own)
    if (options.attach is None) == (job.target is None):
        parser.error("what shall be watched? Give a script, - for standard input, -m MODULE, -c CODE, or --attach PID")
    refused = unwritable(None if options.text else options.output) or (job.target and run.refusal(options, job))
    if refused:
        print(f"rushlight memory watch: {refused}", file=sys.stderr)
        return 2
    if options.attach is not None:
        return _attached(options)
    return Script(options, [*_of_report(own), *words[len(own) :]]).watch(job.target or "")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rushlight memory watch",
        usage="rushlight memory watch [OPTION ...] (SCRIPT.py | - | -m MODULE | -c CODE | --attach PID) [ARGUMENT ...]",
        description="Show what a program has in memory while it runs; at its end, write the report.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--attach", metavar="PID", type=int, help="watch a process that runs already and allows it")
    parser.add_argument("--every", metavar="SECONDS", type=_seconds, help="between two looks (default: 0.5; lines: 2)")
    parser.add_argument("--lines", action="store_true", help="a line for each look, as where there is no terminal")
    parser.add_argument("-o", "--output", metavar="PATH", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--text", action="store_true", help="print the report instead")
    parser.add_argument("--save", metavar="PATH", help="write the snapshot too")
    parser.add_argument("--max-entries", metavar="N", type=count, help="events that are kept (default: 2**20)")
    run.add_options(parser)
    return parser


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.05 <= found <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 0.05 to 3600, got {text!r}")
    return found


def _of_report(own: list[str]) -> list[str]:
    """Our options without those that `report` does not have."""
    found, words = list[str](), iter(own)
    for word in words:
        if word in ("--attach", "--every"):
            next(words)
        elif not word.startswith(("--attach=", "--every=")) and word != "--lines":
            found.append(word)
    return found


def _view(options: argparse.Namespace, title: str) -> Any:
    """A picture where there can be one, else lines, both on the standard error: the output is the program's."""
    from rushlight.memory.watching.view import Lines, Screen, can_draw

    drawn = not options.lines and can_draw(sys.stderr)
    if options.every is None:
        options.every = 0.5 if drawn else 2.0
    return Screen(title, sys.stderr) if drawn else Lines(title, sys.stderr)


class Script:
    """A script that runs in a process of its own, and is watched."""

    def __init__(self, options: argparse.Namespace, words: list[str]):
        self.options, self.words = options, words
        self.process: subprocess.Popen[bytes] | None = None
        self.begun = False  # whether the recorder is there: from then on Ctrl-C leaves a report
        self.sent = 0

    def watch(self, title: str) -> int:
        """Run it, show what it has, and return its exit status."""
        view = _view(self.options, os.path.basename(title) if title else "the script")
        with handled(self.forward, *SIGNALS):
            feed = self.start(piped=hasattr(view, "live"))
            with view:
                self.follow(feed, view)
            status = self.process.wait() if self.process is not None else 1
        if self.sent and not self.begun:
            print("rushlight memory watch: interrupted before the script began; no report was written", file=sys.stderr)
        return 128 + self.sent if self.sent and status < 0 else 128 - status if status < 0 else status

    def start(self, piped: bool) -> int:
        """Start it in a group of its own, since Ctrl-C comes from us; the end of the pipe that it sends samples to."""
        ours, theirs = os.pipe()
        every = ["--feed", str(theirs), "--every", str(self.options.every)]
        program = [sys.executable, "-m", "rushlight", "memory", "report", *every, *self.words]
        out, errors = (subprocess.PIPE if piped and stream.isatty() else None for stream in (sys.stdout, sys.stderr))
        stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
        self.process = subprocess.Popen(
            program, pass_fds=(theirs,), process_group=0, stdin=stdin, stdout=out, stderr=errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"} if piped else None,
        )  # fmt: skip
        os.close(theirs)
        return ours

    def forward(self, number: int, frame: Any) -> None:
        """A signal is for the script: it ends, and the report is written."""
        self.sent = number
        if self.process is None:
            raise KeyboardInterrupt
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number if self.begun else signal.SIGKILL)

    def follow(self, feed: int, view: Any) -> None:
        """Show samples, and let go by what the script writes, until it closes all of it."""
        assert self.process is not None
        with selectors.DefaultSelector() as ready:
            ready.register(feed, selectors.EVENT_READ, Cut(self.sampled(view)))
            for pipe in (self.process.stdout, self.process.stderr):
                if pipe is not None:
                    ready.register(pipe.fileno(), selectors.EVENT_READ, Cut(view.say))
            while ready.get_map():
                for key, _ in ready.select():
                    data = os.read(key.fd, 1 << 16)
                    if not key.data.take(data):
                        ready.unregister(key.fd)

    def sampled(self, view: Any) -> Callable[..., Any]:
        """What is to be done with a line of the feed."""

        def show(line: str) -> None:
            self.begun = True
            view.show(json.loads(line))

        return show


class Cut:
    """Cuts what comes in pieces into lines, and hands them on."""

    def __init__(self, give: Any):
        self.give, self.rest = give, b""

    def take(self, data: bytes) -> bool:
        """Take a piece; whether there may be more: an empty one is the end."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        if not data and self.rest:
            lines.append(self.rest)
        for line in lines:
            self.give(line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2])  # of a progress bar its last
        return bool(data)


def _attached(options: argparse.Namespace) -> int:
    """Watch a process until it ends, or Ctrl-C ends the watching: then with the report on what was watched."""
    from rushlight.memory.watching.attach import REPORT, connect
    from rushlight.memory.watching.view import summary

    try:
        there = connect(options.attach)
    except OSError as error:
        print(f"rushlight memory watch: {error}", file=sys.stderr)
        return 1
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        with contextlib.suppress(OSError):
            there.sendall(REPORT)

    title = f"process {options.attach}"
    with handled(ask, *SIGNALS), there:
        seen, recording = _seen(there, _view(options, title))
        if recording is not None:
            _tell(options, recording, title)
        elif not asked:
            print(f"{summary(seen, title)}\nIt has ended.", file=sys.stderr)
        else:
            print(f"{summary(seen, title)}\nIt ended before it could give its recording.", file=sys.stderr)
    return 128 + asked[0] if asked else 0


def _seen(there: socket.socket, view: Any) -> tuple[Any, Any]:
    """Show the samples of a process until it is gone, or sends its recording: the last sample, and the recording."""
    last = recording = None
    with contextlib.suppress(ConnectionError), view, there.makefile("rb") as lines:
        for line in lines:
            found = json.loads(line)
            if "recording" in found:
                recording = found["recording"]
                break
            last = found
            view.show(found)
    return last, recording


def _tell(options: argparse.Namespace, packed: str, title: str) -> None:
    """Write, or print, the report on a recording as it was sent."""
    from rushlight import memory
    from rushlight.memory.recordings.columns import unpack

    recording = unpack(packed)
    if options.save:
        written(lambda path: memory.save(recording, path), options.save)
    if options.text:
        print(memory.text_report(recording, title=title), end="")
        return
    path = written(lambda path: memory.report(recording, path, title=title), options.output)
    summed_up(recording, path)
