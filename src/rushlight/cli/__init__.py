"""The command line, ``rushlight`` or ``python -m rushlight``.

Each command is a module of its own, imported when it is asked for, with ``main(argv) -> int``.
"""

import contextlib
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence

from rushlight.cli.parsers import Parser
from rushlight.version import __version__

__all__ = ["main"]

COMMANDS = {
    "demo": "train a vision transformer on real digits in three ways and measure its memory",
    "run": "run an unmodified PyTorch script on rushlight",
    "install-as-torch": "count as PyTorch in this virtual environment, for pip and for `import torch`",
    "memory": "show where memory goes: a report on a recording or a script, live or after it; advice in bytes",
    "estimate": "say what training a model will need, before it runs",
    "explain": "say what caused a message, and what to do",
    "doctor": "say what this machine offers, what is in use, and what it measured",
    "info": "print the versions in use, for a bug report",
    "completion": "print what a shell needs to complete commands and options",
}

EXAMPLES = """examples:
  rushlight demo                             train three ways; a table and rushlight-demo.svg
  rushlight run train.py --epochs 3          `import torch` in train.py finds rushlight
  rushlight run --weights random infer.py    pretrained models start untrained
  rushlight memory report train.py           where its memory goes, as a page: report.html
  rushlight estimate resnet50 8x3x224x224    what its training would need
  rushlight explain backward-twice           what caused a message, and what to do
  rushlight doctor                           which BLAS, which kernels, how fast
  rushlight COMMAND --help                   the options of one command
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in ``argv`` (default: the process's arguments) and return its exit status."""
    parser = Parser(
        prog="rushlight",
        description="Automatic differentiation with PyTorch's API on CPUs, whose product is memory: what training costs,\n"
        "and how to train with less of it.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"rushlight {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Only the command's name is parsed here: what follows belongs to the command, or to the script it runs.
    known = parser.parse_args(arguments[:1])
    if known.command is None:
        parser.print_help()
        return 2
    module = importlib.import_module(f"rushlight.cli.{known.command.replace('-', '_')}")
    try:
        if known.command in ("run", "memory"):  # what a script prints fails or not as it does under Python
            return int(module.main(arguments[1:]) or 0)
        return _printing(module.main, arguments[1:])
    except KeyboardInterrupt:
        print("rushlight: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def _printing(command: Callable[[list[str]], int | None], arguments: list[str]) -> int:
    """Run a command that prints: on any terminal, and into a pipe that its reader closes."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = command(arguments) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        return closed_pipe()
    return status


def closed_pipe() -> int:
    """Let nothing more be written to standard output, whose reader is gone; the exit status that this has in a shell."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
