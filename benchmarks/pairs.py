"""Timing two libraries against each other in one process: alternating, medians, the ratio of medians."""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import rushlight  # before torch: it chooses the BLAS core type


PAUSE = 0.1  # seconds


@dataclass
class Pair:
    """What one comparison measured: medians of both, in seconds (or bytes), and how they are judged."""

    name: str
    ours: float
    theirs: float
    limit: float | None = None  # of the ratio
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def within(self) -> bool:
        return self.limit is None or self.ratio <= self.limit


def alternate(
    ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int, number: int = 1, warm_up: int = 2
) -> tuple[float, float]:
    """Median seconds per call of two functions, timed in turns of ``number`` calls.

    Which of them goes first changes from turn to turn.  Before each, a pause: threads of the other library that
    wait for work by spinning would take the processor.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(-warm_up, repeats):
        for which in (0, 1) if turn % 2 else (1, 0):
            function = (ours, theirs)[which]
            time.sleep(PAUSE)
            for _ in range(number // 4):  # caches and the threads of this library come back
                function()
            start = time.perf_counter()
            for _ in range(number):
                function()
            if turn >= 0:
                times[which].append((time.perf_counter() - start) / number)
    return statistics.median(times[0]), statistics.median(times[1])


def same_threads(count: int | None = None) -> int:
    """Give both libraries the same number of threads (default: all of this process's cores)."""
    import torch

    count = count or len(os.sched_getaffinity(0))
    torch.set_num_threads(count)
    rushlight.set_num_threads(count)
    return count


def arguments(description: str, names: list[str]) -> argparse.Namespace:
    """The options that both benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of: {', '.join(names)}")
    parser.add_argument("--threads", type=int, help="for both libraries (default: all cores)")
    parser.add_argument("--repeats", type=int, help="measurements of each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser.parse_args()


def human(value: float, unit: str) -> str:
    """A time or a size in a fitting unit."""
    if unit == "B":
        return f"{value / 1e6:.1f} MB"
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.3g} {name}" if value < 100 * factor else f"{value / factor:.0f} {name}"
    return f"{value * 1e9:.0f} ns"


def report(pairs: list[Pair], threads: int, file: Path | None = None) -> int:
    """Print the comparisons as a Markdown table; the exit status is 1 if one exceeds its limit."""
    import torch

    print(
        f"\nrushlight {rushlight.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}, ",
        end="",
    )
    print(f"{threads} threads each; medians, in turns in one run\n")
    rows = [("", "rushlight", "PyTorch", "ratio", "limit", "")]
    for pair in pairs:
        limit = "" if pair.limit is None else f"{pair.limit:.2f}" + ("" if pair.within else " EXCEEDED")
        values = (human(pair.ours, pair.unit), human(pair.theirs, pair.unit), f"{pair.ratio:.2f}")
        rows.append((pair.name, *values, limit, pair.note))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    if file:
        file.write_text(json.dumps([asdict(pair) | {"ratio": pair.ratio} for pair in pairs], indent=1))
    return 0 if all(pair.within for pair in pairs) else 1
