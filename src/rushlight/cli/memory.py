"""``rushlight memory``: reports on recordings of memory, and on scripts, which it runs under the recorder."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.cli import closed_pipe, run
from rushlight.cli.interrupts import noted
from rushlight.cli.parsers import Parser, count
from rushlight.cli.record import leaving, recorded, stopped, summed_up, unwritable, written

__all__ = ["main"]

EPILOG = """examples:
  rushlight memory report train.py --epochs 1        run a script under the recorder; report.html
  rushlight memory report -o vit.html train.py       options stand before the script: what stands behind is its own
  rushlight memory report -m package.train --lr 0.1
  rushlight memory report --memory-budget 2GiB train.py
  rushlight memory report snapshot.pickle -o vit.html
  rushlight memory report plain.pickle --compare fused.pickle
  rushlight memory report rank0.pickle --compare rank1.pickle --compare rank2.pickle
  rushlight memory report --text snapshot.pickle     on the terminal instead
  rushlight memory watch train.py                    where it goes while the script runs; at the end the report
  rushlight memory watch --attach 4711               of a process that called memory.allow_watch()
  rushlight memory frontier train.py                 bytes against seconds a step, in several ways of training
  rushlight memory show snapshot.pickle              the same as report --text
  rushlight memory convert torch.pickle ours.pickle  write a snapshot anew, for PyTorch's viewer too
  rushlight memory check snapshot.pickle             whether a viewer can read it

FILE is a snapshot: of `memory.dump`, or of PyTorch's torch.cuda.memory._snapshot(). Reading one executes nothing.
What stands behind a script goes to the script. Ctrl-C and SIGTERM end it, and what it did until then is reported.
"""


def main(argv: Sequence[str]) -> int:
    """Do what `argv` asks for and return the exit status."""
    parser = _parser()
    words = list(argv)
    if words[:1] in (["frontier"], ["watch"]):
        return int(importlib.import_module(f"rushlight.cli.{words[0]}").main(words[1:]))
    if words[:1] == ["report"]:
        options, job = _of_report(words[1:], parser)
    else:
        options, job = parser.parse_args(words), None
    if options.command is None:
        parser.print_help()
        return 2
    from rushlight.memory.snapshots.snapshots import SnapshotError

    try:
        status: int = options.run(options) if job is None else _report(options, job)
        return status
    except BrokenPipeError:
        return closed_pipe()
    except SnapshotError as error:
        print(f"rushlight memory: {error}", file=sys.stderr)
    except OSError as error:
        print(f"rushlight memory: {error.filename or 'standard output'}: {error.strerror or error}", file=sys.stderr)
    return 1


def _of_report(words: list[str], parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, run.Job]:
    """The options of `report` and what it is on.  A snapshot has no arguments: what stands behind it is for us too."""
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    report = commands.choices["report"]
    own, job = run.split(words, report)
    snapshot = job.mode == "script" and job.target is not None and not _is_script(job.target)
    options = report.parse_args([*own, *job.arguments] if snapshot else own)
    if job.target is None:
        report.error("what shall be reported? Give a snapshot, a script, - for standard input, -m MODULE or -c CODE")
    options.command = "report"
    return options, job._replace(mode="snapshot") if snapshot else job


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rushlight memory",
        description="See where memory goes: timeline, peak, advice in bytes.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_report(_command(commands, "report", "write a page on a snapshot, or on a script that is run", _show))
    _command(commands, "watch", "show what a script, or a process that allows it, has in memory while it runs", _show)
    _command(commands, "frontier", "show what ways of training cost a script, in bytes and in seconds a step", _show)
    show = _command(commands, "show", "print a report on a snapshot", _show)
    show.add_argument("file", metavar="FILE", help="the snapshot")
    _common(show)
    convert = _command(commands, "convert", "write a snapshot anew, as this version writes them", _convert)
    convert.add_argument("file", metavar="FILE", help="the snapshot to read")
    convert.add_argument("to", metavar="TO", help="the file to write")
    convert.add_argument("--device", metavar="N", help="of a file with several: a number, or host")
    check = _command(commands, "check", "say whether a viewer can read a snapshot", _check)
    check.add_argument("file", metavar="FILE", help="the snapshot")
    return parser


def _command(commands: Any, name: str, text: str, do: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """The parser of a command that does what `text` says."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(run=do)
    return parser


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rushlight memory report [OPTION ...] (FILE | SCRIPT.py | - | -m MODULE | -c CODE) [ARGUMENT ...]"
    parser.add_argument("-o", "--output", metavar="PATH", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--text", action="store_true", help="print the report instead")
    parser.add_argument("--save", metavar="PATH", help="of a script: write the snapshot too")
    parser.add_argument(
        "--max-entries", metavar="N", type=count, default=1 << 20, help="events that are kept (default: 2**20)"
    )
    parser.add_argument("--feed", type=int, help=argparse.SUPPRESS)  # the descriptor that `watch` reads samples from
    parser.add_argument("--every", type=float, default=0.5, help=argparse.SUPPRESS)
    _common(parser)
    run.add_options(parser)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compare",
        metavar="FILE",
        action="append",
        default=[],
        help="another snapshot to compare with; several, each so",
    )
    parser.add_argument("--width", metavar="N", type=count, help="columns of printed reports")
    parser.add_argument("--device", metavar="N", help="of a file with several: a number, or host")


def _report(options: argparse.Namespace, job: run.Job) -> int:
    """Write or print a report on a snapshot or a script."""
    from rushlight.memory import load, report

    refused = _refusal(options, job)
    if refused is not None:
        print(f"rushlight memory report: {refused}", file=sys.stderr)
        return 2
    target = job.target or ""
    others, titles = _others(options)
    name = "a command" if job.mode == "-c" else os.path.basename(target)

    def told(recording: Any) -> None:
        if options.text:
            return _print(recording, others, name, titles, options.width)
        path = written(lambda path: report(recording, path, others, name, titles), options.output)
        summed_up(recording, path)

    if job.mode == "snapshot":
        told(load(target, options.device))
        return 0
    return _of_script(options, job, told)


def _others(options: argparse.Namespace) -> tuple[list[Any], list[str]]:
    """The snapshots to compare with, and their names."""
    from rushlight.memory import load

    return [load(path) for path in options.compare], [os.path.basename(path) for path in options.compare]


def _of_script(options: argparse.Namespace, job: run.Job, told: Callable[[Any], None]) -> int:
    """Run a script, have `told` report what it did, whatever ended it, and return its exit status."""
    from rushlight import memory

    process = os.getpid()

    def finish(status: int) -> int:
        if os.getpid() != process:  # one that the script forked, and that went on to the script's end
            return status
        with noted("the report is being written") as signals:
            recording = stopped(status)
            if options.save:
                written(lambda path: memory.save(recording, path), options.save)
            told(recording)
        return 128 + signals[0] if signals else status

    with leaving(finish):
        status = recorded(options, job)
    return finish(status)


def _refusal(options: argparse.Namespace, job: run.Job) -> str | None:
    """What is known to go wrong before anything runs."""
    if job.mode != "snapshot":
        refused = run.refusal(options, job)
        if refused is not None:
            return refused
    elif options.save or options.weights or options.memory_budget or options.spill:
        return "--save, --weights, --memory-budget and --spill are for scripts that are run, not for snapshots"
    return unwritable(None if options.text else options.output) or unwritable(options.save)


def _is_script(path: str) -> bool:
    return path.endswith((".py", ".pyz")) or os.path.isdir(path)


def _print(recording: Any, others: list[Any], name: str, titles: list[str], width: int | None) -> None:
    from rushlight.memory.reports.terminal import shown_in, text_report

    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # there is no standard output if it was closed
    print(shown_in(text_report(recording, width, None, others, name, titles), encoding), end="", flush=True)


def _show(options: argparse.Namespace) -> int:
    from rushlight.memory import load

    others, titles = _others(options)
    _print(load(options.file, options.device), others, os.path.basename(options.file), titles, options.width)
    return 0


def _convert(options: argparse.Namespace) -> int:
    from rushlight.memory import load, save

    recording = load(options.file, options.device)
    try:
        save(recording, options.to)
    except OSError as error:
        error.filename = error.filename or options.to  # a full disk names no file
        raise
    print(f"{options.to}: {len(recording.time):,} events, {len(recording.size):,} blocks")
    return 0


def _check(options: argparse.Namespace) -> int:
    from rushlight.memory import load_snapshot, validate
    from rushlight.memory.counting.units import size

    snapshot = load_snapshot(options.file)
    try:
        found = validate(snapshot)
    except ValueError as error:
        print(f"{options.file}: {error}")
        return 1
    print(
        f"{options.file}: readable; {size(found.start)} at the beginning, peak {size(found.peak)}, {size(found.end)} at the end"
    )
    return 0
