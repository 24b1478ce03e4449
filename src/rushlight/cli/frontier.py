"""``rushlight memory frontier``: what ways of training cost a script, measured in its own first steps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from rushlight.cli import run
from rushlight.cli.parsers import Parser, count
from rushlight.cli.record import unwritable, written

__all__ = ["main", "search"]

EPILOG = """examples:
  rushlight memory frontier train.py                       table and picture on the terminal
  rushlight memory frontier -o curve.html train.py --lr 1  and a page; .svg: the picture alone
  rushlight run --slowdown 1.3x train.py                   train at the point with the fewest bytes in 1.3 times the time
  rushlight run --memory-budget min train.py               or with the fewest of all

The script runs once for each way, until its optimizer stepped a few times, in a process of its own whose output is dropped;
files that it writes until then are written each time.
"""


def main(argv: Sequence[str]) -> int:
    """Print the curve; exit status 1 where the script cannot be run, 2 for options that make no sense."""
    made = parser()
    own, job = run.split(list(argv), made)
    options = made.parse_args(own)
    if job.target is None:
        made.error("which script? Give one, - for standard input, -m MODULE or -c CODE")
    refused = run.refusal(options, job) or unwritable(options.output)
    if options.memory_budget is not None or options.slowdown is not None:
        refused = "--memory-budget and --slowdown choose a point of the curve: give them to rushlight run"
    if refused is not None:
        print(f"rushlight memory frontier: {refused}", file=sys.stderr)
        return 2
    from rushlight.memory.planning.trials import TrialFailed

    try:
        found = search(options, job)
    except TrialFailed as error:
        print(f"rushlight memory frontier: {job.target}: {error}", file=sys.stderr)
        return 1
    print(found.text(options.width))
    if options.output:
        path = written(lambda path: found.save(path, job.target or ""), options.output)
        print(f"{path}: open it in a browser", file=sys.stderr)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = Parser(
        prog="rushlight memory frontier",
        usage="rushlight memory frontier [OPTION ...] (SCRIPT | - | -m MODULE | -c CODE) [ARGUMENT ...]",
        description="Show the curve of peak bytes against seconds a step, with the code for each point.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    made.add_argument("-o", "--output", metavar="PATH", help="write the picture too: .svg, or a page")
    made.add_argument("--steps", metavar="N", type=count, default=4, help="steps of the optimizer to take (default: 4)")
    made.add_argument("--inexact", action="store_true", help="also ways that give somewhat different gradients")
    made.add_argument("--width", metavar="N", type=count, help="columns (default: the terminal's)")
    run.add_options(made)
    for action in made._actions:
        if action.dest in ("memory_budget", "slowdown"):  # taken, to say in words where they belong
            action.help = argparse.SUPPRESS
    return made


def search(options: argparse.Namespace, job: run.Job) -> Any:
    """The curve of a job.  Raises TrialFailed where it cannot be run as it is."""
    from rushlight.memory.planning import scripts

    plain = argparse.Namespace(**{**vars(options), "memory_budget": None, "slowdown": None})
    exact, steps = not getattr(options, "inexact", False), max(getattr(options, "steps", 4), 2)

    def told(line: str) -> None:
        print(f"rushlight: {line}", file=sys.stderr, flush=True)

    return scripts.frontier_of(lambda: run.prepared(plain, job)(), exact, steps, told)
