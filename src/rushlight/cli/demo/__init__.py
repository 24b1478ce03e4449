"""``rushlight demo``: one vision transformer, trained on real digits in three ways, and what each costs in memory."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rushlight.cli.demo.chart import draw
from rushlight.cli.demo.progress import Progress
from rushlight.cli.demo.table import render
from rushlight.cli.demo.ways import MOST_STEPS, WAYS, run
from rushlight.cli.parsers import Parser, count
from rushlight.cli.record import unwritable

__all__ = ["main"]

EPILOG = """The three ways are one script but for a line:
  Adam                    torch.optim.Adam(model.parameters())
  Adam in backward        each parameter stepped as soon as its gradient is complete: optim.in_backward(optimizer)
  Adam, budget of 100 MB  with memory.budget(100_000_000): what is not needed at the moment waits on disk
Each runs in a process of its own. Its memory is the resident memory above what the process held after its
imports and the data; the peak is the operating system's own (VmHWM).
"""
PROMISE = """Training one vision transformer (9.5 million parameters) on 1,797 handwritten digits in three ways, {passes} each.
Four passes take less than two minutes on two cores.
"""


def main(argv: Sequence[str]) -> int:
    """Run the demo; exit status 0 if every run trained and the losses agree."""
    options = _parser().parse_args(argv)
    refused = unwritable(options.output) or unwritable(options.json)
    if refused is not None:
        print(f"rushlight demo: {refused}", file=sys.stderr)
        return 2
    print(PROMISE.format(passes=_told(options.epochs, options.steps)), flush=True)
    results = []
    for way in WAYS:
        with Progress(WAYS[way]) as progress:
            results.append(run(way, (options.epochs, options.steps, options.seed), progress.step))
    print(render(results))
    chart = Path(options.output)
    chart.write_text(draw(results), encoding="utf-8")
    print(f"\nThe runs' memory over time: {chart}")
    if options.json:
        _write_json(Path(options.json), results)
    return 0 if agreement(results) <= 1e-5 else 1


def _told(epochs: int, steps: int) -> str:
    """How much is trained."""
    part = f"the first {steps} steps of " if steps < MOST_STEPS else ""
    return part + ("a pass" if epochs == 1 else f"{epochs} passes")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rushlight demo",
        description="Train a vision transformer on 1,797 handwritten digits in three ways and measure the memory.",
        epilog=EPILOG,
    )
    parser.add_argument("-o", "--output", default="rushlight-demo.svg", metavar="FILE", help="the chart (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--epochs", type=count, default=4, metavar="N", help="passes over the data (%(default)s)")
    parser.add_argument(
        "--steps", type=count, default=MOST_STEPS, metavar="N", help="at most, in a pass (%(default)s: all)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights, split and order (%(default)s)")
    return parser


def agreement(results: list[dict[str, Any]]) -> float:
    """The largest difference between the losses of any two runs at the same step."""
    columns: Iterable[tuple[float, ...]] = zip(*(result["losses"] for result in results), strict=True)
    return max(max(column) - min(column) for column in columns)


def _write_json(path: Path, results: list[dict[str, Any]]) -> None:
    rows = [{key: value for key, value in result.items() if key != "series"} for result in results]
    path.write_text(json.dumps({"runs": rows, "largest_loss_difference": agreement(results)}, indent=1))
    print(f"The figures: {path}", file=sys.stdout)
