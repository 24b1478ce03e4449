"""``rushlight memory``: reports on recordings of memory, and on scripts, which it runs under the recorder."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["main"]

EPILOG = """examples:
  rushlight memory report train.py --epochs 1        run a script under the recorder; report.html
  rushlight memory report train.py -o report.html    the page's name may stand behind the script
  rushlight memory report -o vit.html snapshot.pickle
  rushlight memory report plain.pickle --compare fused.pickle
  rushlight memory report --text snapshot.pickle     on the terminal instead
  rushlight memory show snapshot.pickle              the same as report --text
  rushlight memory convert torch.pickle ours.pickle  write a snapshot anew, for PyTorch's viewer too
  rushlight memory check snapshot.pickle             whether a viewer can read it

FILE is a snapshot: of `memory.dump`, or of PyTorch's torch.cuda.memory._snapshot(). Reading one executes nothing.
What stands behind a script goes to the script, but for -o PATH; what stands behind -- does in any case.
"""


def main(argv: Sequence[str]) -> int:
    """Do what `argv` asks for and return the exit status."""
    parser = _parser()
    options = parser.parse_args(list(argv))
    if options.command is None:
        parser.print_help()
        return 2
    from rushlight.memory.snapshots import SnapshotError

    try:
        status: int = options.run(options)
        return status
    except SnapshotError as error:
        print(f"rushlight memory: {error}", file=sys.stderr)
    except OSError as error:
        print(f"rushlight memory: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rushlight memory",
        description="See where memory goes: timeline, peak, advice in bytes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_report(_command(commands, "report", "write a page on a snapshot, or on a script that is run", _report))
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


def _command(commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """The parser of a command that does what `text` says."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(run=run)
    return parser


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="PATH", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--text", action="store_true", help="print the report instead")
    parser.add_argument("--save", metavar="PATH", help="of a script: write the snapshot too")
    parser.add_argument(
        "--max-entries", metavar="N", type=int, default=1 << 20, help="events that are kept (default: 2**20)"
    )
    _common(parser)
    parser.add_argument("source", metavar="FILE|SCRIPT.py", help="a snapshot, or a script to run")
    rest = parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="of the script; or -o, --compare FILE"
    )
    rest.required = False  # or Python 3.11 says that it is, where the script is missing


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--compare", metavar="FILE", help="another snapshot to compare with")
    parser.add_argument("--width", metavar="N", type=int, help="columns of printed reports")
    parser.add_argument("--device", metavar="N", help="of a file with several: a number, or host")


def _report(options: argparse.Namespace) -> int:
    """Write or print a report on a snapshot or a script."""
    from rushlight.memory import load, report

    status = 0
    if _is_script(options.source):
        options = _output(options)
        recording, status = _record(options)
        if recording is None:
            return status
    else:
        options = _late(options)
        recording = load(options.source, options.device)
    other = load(options.compare) if options.compare else None
    names = os.path.basename(options.source), os.path.basename(options.compare or "")
    if options.text:
        return _print(recording, other, names, options.width) or status
    path = report(recording, options.output, other, *names)
    size = os.path.getsize(path)
    print(f"{path}: {size / 1e6:.1f} MB; open it in a browser")
    return status


def _late(options: argparse.Namespace) -> argparse.Namespace:
    """Options that stand behind a file, which has no arguments of its own."""
    if options.arguments:
        parser = argparse.ArgumentParser(prog="rushlight memory report", argument_default=argparse.SUPPRESS)
        parser.add_argument("-o", "--output")
        parser.add_argument("--text", action="store_true")
        parser.add_argument("--compare")
        parser.add_argument("--width", type=int)
        parser.add_argument("--device")
        parser.parse_args(options.arguments, options)
    return options


def _output(options: argparse.Namespace) -> argparse.Namespace:
    """-o or --output that stands behind a script, which gets all other arguments, and those behind -- as they are."""
    parser = argparse.ArgumentParser(prog="rushlight memory report", add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output", default=options.output)
    given = options.arguments
    end = given.index("--") if "--" in given else len(given)
    _, left = parser.parse_known_args(given[:end], options)
    options.arguments = left + given[end + 1 :]
    return options


def _is_script(path: str) -> bool:
    return path.endswith(".py")


def _record(options: argparse.Namespace) -> tuple[Any, int]:
    """What a script did, recorded, and its exit status; no recording if there is no such script."""
    from rushlight import memory
    from rushlight.cli import run

    if not os.path.exists(options.source):
        print(f"rushlight memory report: no such script: {options.source}", file=sys.stderr)
        return None, 2
    memory.record_history(max_entries=options.max_entries)
    try:
        status = run.main([options.source, *options.arguments])
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        recording = memory.recording()
        if memory.is_recording():
            memory.record_history(enabled=None)
    if options.save:
        memory.save(recording, options.save)
    return recording, status


def _print(recording: Any, other: Any, names: tuple[str, str], width: int | None) -> int:
    from rushlight.memory import text_report

    print(text_report(recording, width, None, other, *names), end="")
    return 0


def _show(options: argparse.Namespace) -> int:
    from rushlight.memory import load

    other = load(options.compare) if options.compare else None
    names = os.path.basename(options.file), os.path.basename(options.compare or "")
    return _print(load(options.file, options.device), other, names, options.width)


def _convert(options: argparse.Namespace) -> int:
    from rushlight.memory import load, save

    recording = load(options.file, options.device)
    save(recording, options.to)
    print(f"{options.to}: {len(recording.time):,} events, {len(recording.size):,} blocks")
    return 0


def _check(options: argparse.Namespace) -> int:
    from rushlight.memory import load_snapshot, validate
    from rushlight.memory.units import size

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
