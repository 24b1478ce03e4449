#!/usr/bin/env python
"""Holds every kernel against its NumPy reference, and operators against PyTorch, over layouts, dtypes, sizes and threads.

Every array lies in a buffer that is full of NaN, then of a huge number, and what lies around it must not change: a kernel
that reads or writes outside of its arrays gives other results or leaves traces.  Each layout is tried for each argument
alone, and for all of them together.

    python tools/sweep_kernels.py                      everything (PyTorch's side only where it is installed)
    python tools/sweep_kernels.py --fast               what the tests run
    python tools/sweep_kernels.py --only 'softmax|adam' --dtypes float32 --threads 2 --seed 3 --seconds 60
    python tools/sweep_kernels.py --part 3/8           every eighth case of the order that the seed draws, from the third on
    python tools/sweep_kernels.py --skip 1200          all but the first 1200: goes on where another run was stopped

RUSHLIGHT_NATIVE=0 sweeps the references themselves (against what they give for arrays without gaps).  Each failure is
printed when it is found, as lines of code that show it; where the output is no terminal, how far it is every 20 seconds.
Ends with counts, and with exit status 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import rushlight  # noqa: F401, I001  (first: it chooses how NumPy's BLAS starts)
import numpy as np

from rushlight import kernels
from rushlight.kernels.native import loader
from tools.sweep_cases import Case, cases
from tools.sweep_layouts import DTYPES, FILLS, LAYOUTS, OTHER_NUMBERS, Placed, place

TOLERANCE = {"float32": 2e-4, "float64": 1e-9, "float16": 1e-2, "bfloat16": 6e-2}
FAST_LAYOUTS = ("offset", "stepped", "transposed", "channels last", "expanded", "misaligned")


@contextlib.contextmanager
def references() -> Iterator[None]:
    """Kernels take their NumPy references inside."""
    before, loader._tables = loader._tables, {}
    try:
        yield
    finally:
        loader._tables = before


def arrays_of(case: Case, dtype: str, seed: int) -> list[Any]:
    """A case's arrays, without gaps; floats in the dtype."""
    built = case.build(np.random.default_rng([seed, len(case.name)]))
    return [np.asarray(a, DTYPES[dtype]) if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in built]


def flat(found: Any, arrays: list[Any], writes: tuple[int, ...]) -> list[Any]:
    """The results of a call: what it returned and what it wrote."""
    returned = found if isinstance(found, list | tuple) else (found,)
    return [a for a in (*returned, *(arrays[i] for i in writes)) if isinstance(a, np.ndarray)]


def wanted(case: Case, arrays: list[Any]) -> list[Any]:
    """What the reference gives for copies without gaps."""
    copies = [a.copy(order="C") for a in arrays]
    with references(), np.errstate(all="ignore"):
        return flat(case.call(kernels, *copies), copies, case.writes)


def differ(mine: list[Any], theirs: list[Any], tolerance: float) -> str:
    """Where results differ by more than rounding, or ""."""
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i}: {a.dtype} {a.shape} instead of {b.dtype} {b.shape}"
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(y), initial=1, where=np.isfinite(y))
            near = (np.abs(x - y) <= tolerance * (scale + np.abs(y))) | (x == y) | (np.isnan(x) & np.isnan(y))
        if not near.all():
            at = tuple(int(n) for n in np.argwhere(~near)[0])
            return f"result {i}: {np.count_nonzero(~near)} of {near.size} wrong, first {at}: {x[at]} instead of {y[at]}"
    return ""


def with_numbers(case: Case, arrays: list[Any], layouts: Sequence[str], fill: str) -> tuple[list[Any], list[Any]]:
    """The arrays to be laid out, of which some follow from others, and the numbers that they have in these layouts."""
    other = [layout in OTHER_NUMBERS for layout in layouts]
    seen = [place(a, n, fill).array.copy() if o else a for a, n, o in zip(arrays, layouts, other, strict=True)]
    if case.refit is None or not any(other):
        return arrays, seen
    anew = case.refit(seen)
    return [a if x is y else y for a, x, y in zip(arrays, seen, anew, strict=True)], anew


def check(case: Case, dtype: str, layouts: list[str], fill: str, want: list[Any], arrays: list[Any]) -> str:
    """Run a case on arrays in these layouts; what is wrong, or ""."""
    placed = [place(a, layout, fill) for a, layout in zip(arrays, layouts, strict=True)]
    try:
        given = [p.array for p in placed]
        with np.errstate(all="ignore"):
            found = flat(case.call(kernels, *given), given, case.writes)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    said = differ(found, want, TOLERANCE[dtype] * case.loose)
    return said or written(placed, case.writes)


def written(placed: list[Placed], writes: tuple[int, ...]) -> str:
    """Which argument was written where it must not be, or ""."""
    for i, p in enumerate(placed):
        if p.written_outside() if i in writes else p.changed():
            return f"argument {i} was written {'outside of its elements' if i in writes else 'though it is only read'}"
    return ""


def choices(case: Case, count: int, layouts: tuple[str, ...]) -> Iterator[list[str]]:
    """Layouts of a case's arguments: each alone in each, then all in one."""
    for layout in layouts:
        able = [i for i in range(count) if layout not in OTHER_NUMBERS or i not in (*case.writes, *case.bound)]
        for chosen in [[i] for i in able] + ([able] if len(able) > 1 else []):
            yield [layout if i in chosen else "contiguous" for i in range(count)]


def replay(name: str, dtype: str, layouts: list[str], fill: str, threads: int, seed: int) -> str:
    """Run one case once more; what is wrong, or ""."""
    case = next(c for c in cases() if c.name == name)
    kernels.set_num_threads(threads)
    arrays, seen = with_numbers(case, arrays_of(case, dtype, seed), layouts, fill)
    return check(case, dtype, layouts, fill, wanted(case, seen), arrays)


class Sweep:
    """What was run and what failed."""

    def __init__(self, threads: tuple[int, ...], fills: tuple[str, ...], layouts: tuple[str, ...], seed: int) -> None:
        self.threads, self.fills, self.layouts, self.seed = threads, fills, layouts, seed
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, case: Case, dtype: str) -> None:
        """A case in all layouts, fills and numbers of threads."""
        arrays = arrays_of(case, dtype, self.seed)
        usual = wanted(case, arrays)
        self.counts["cases"] += 1
        for layouts in choices(case, len(arrays), self.layouts):
            want, given = usual, arrays
            if any(layout in OTHER_NUMBERS for layout in layouts):
                given, seen = with_numbers(case, arrays, layouts, "nan")
                want = wanted(case, seen)
            for fill, threads in ((f, t) for f in self.fills for t in self.threads):
                kernels.set_num_threads(threads)
                self.counts["evaluations"] += 1
                self.counts[dtype] += 1
                self.counts[f"{threads} threads"] += 1
                said = check(case, dtype, layouts, fill, want, given)
                if said:
                    self.fail(case, dtype, layouts, fill, threads, said)
                    return

    def fail(self, case: Case, dtype: str, layouts: list[str], fill: str, threads: int, said: str) -> None:
        """Keep a failure as code that shows it."""
        call = f"replay({case.name!r}, {dtype!r}, {layouts!r}, {fill!r}, {threads}, {self.seed})"
        self.failures.append(f"# {said}\nfrom tools.sweep_kernels import replay\nprint({call})")


class Shown:
    """Prints failures as they are found, and how far the sweep is: a bar on a terminal, else a line now and then."""

    def __init__(self, total: int, skipped: int, every: float = 20.0) -> None:
        self.total, self.skipped = total, skipped
        self.bar = sys.stderr.isatty() and sys.stdout.isatty()
        self.every = 0.5 if self.bar else every
        self.start = self.before = time.monotonic()
        self.failures = 0

    def case(self, done: int, sweep: Sweep) -> None:
        """After a case: `done` of those that this run has."""
        for failure in sweep.failures[self.failures :]:
            print(f"\n{failure}\n", flush=True)
        self.failures = len(sweep.failures)
        if time.monotonic() - self.before > self.every:
            self.before = time.monotonic()
            self.progress(done, sweep)

    def progress(self, done: int, sweep: Sweep) -> None:
        """How far the sweep is, and how to go on from there."""
        seconds = time.monotonic() - self.start
        told = (f"{done}/{self.total} cases, {sweep.counts['evaluations']:,} evaluations, {len(sweep.failures)} failures, "
                f"{seconds:.0f} s, {seconds / max(done, 1) * (self.total - done):.0f} s left")  # fmt: skip
        if self.bar:
            width = 30 * done // max(self.total, 1)
            print(f"\r[{'#' * width:<30}] {told} ", end="", file=sys.stderr, flush=True)
        else:
            print(f"{told}; --skip {self.skipped + done} goes on here", flush=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="fewer sizes, layouts and fills")
    parser.add_argument("--only", default="", help="cases whose name this pattern finds")
    parser.add_argument("--dtypes", default="float32,float64,float16,bfloat16")
    parser.add_argument("--threads", default="1,2,3")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; cases come in random order")
    parser.add_argument("--operators", choices=("too", "no", "alone"), default="too", help="operators against PyTorch")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="K/N", help="the K-th of N parts alone")
    parser.add_argument("--skip", type=int, default=0, metavar="CASES", help="leave out the first ones (of the part)")
    return parser.parse_args(arguments)


def part(text: str) -> tuple[int, int]:
    """ "3/8" as numbers.  Raises ValueError unless 1 <= K <= N."""
    which, of = (int(number) for number in text.split("/"))
    if not 1 <= which <= of:
        raise ValueError(f"there is no part {which} of {of}")
    return which, of


def chosen(given: argparse.Namespace) -> list[Any]:
    """The (case, dtype) that a run has before it, in the order that its seed draws."""
    from tools import sweep_operators

    whole: list[Any] = [] if given.operators == "alone" else [c for c in cases() if not (given.fast and c.slow)]
    whole += [] if given.operators == "no" else sweep_operators.cases()
    todo = [(c, d) for c in whole for d in given.dtypes.split(",") if re.search(given.only, c.name)]
    random.Random(given.seed).shuffle(todo)
    which, of = given.part
    return todo[which - 1 :: of][given.skip :]


def main() -> int:
    """Sweep, and say what was found."""
    from tools import sweep_operators

    given = parsed()
    threads = tuple(int(n) for n in given.threads.split(","))
    sweep = Sweep((2,) if given.fast else threads, FILLS[:1] if given.fast else FILLS,
                  FAST_LAYOUTS if given.fast else tuple(LAYOUTS), given.seed)  # fmt: skip
    todo = chosen(given)
    native = kernels.native_status()["state"] if loader.tables() else "none"
    print(f"native kernels: {native}, seed {given.seed}, {len(todo)} cases", flush=True)
    shown = Shown(len(todo), given.skip)
    for done, (case, dtype) in enumerate(todo):
        if time.monotonic() - shown.start > given.seconds:
            print(
                f"\nstopped after {given.seconds:.0f} s: {done} of {len(todo)} done; --skip {given.skip + done} goes on"
            )
            break
        if isinstance(case, Case):
            sweep.run(case, dtype)
        else:
            sweep_operators.run(sweep, case, dtype)
        shown.case(done + 1, sweep)
    print("\n" + ", ".join(f"{name}: {count:,}" for name, count in sorted(sweep.counts.items())))
    print(f"{len(sweep.failures)} failures in {time.monotonic() - shown.start:.0f} s")
    return int(bool(sweep.failures))


if __name__ == "__main__":
    raise SystemExit(main())
