"""Draws random programs, runs them under rushlight and PyTorch, and prints what differs, made small.

``python tools/fuzz.py --seconds 120`` runs for two minutes with a new seed; ``--seed S`` repeats a run,
``--replay KIND:SEED:NUMBER`` one program.  The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src")]

from fuzzing.kinds import NAMES, usable  # noqa: E402
from fuzzing.pool import Pool, jobs  # noqa: E402
from fuzzing.report import Finding  # noqa: E402


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (60)")
    parser.add_argument("--seed", default=None, help="repeats a run; a new one is drawn and printed otherwise")
    parser.add_argument("--kinds", nargs="*", default=None, choices=NAMES, help="all by default")
    parser.add_argument("--jobs", type=int, default=jobs(), help="worker processes (2)")
    parser.add_argument("--programs", type=int, default=None, help="stop before the program of this number")
    parser.add_argument("--first", type=int, default=0, help="the number of the program to begin with (0)")
    parser.add_argument("--replay", default=None, metavar="KIND:SEED:NUMBER", help="run one program, and show it whole")
    parser.add_argument("--log", type=Path, default=None, help="append findings to this file, too")
    return parser.parse_args(arguments)


def replay(which: str) -> int:
    """Run one program, print all of it and what it shows."""
    from fuzzing.worker import Worker

    name, _, seed = which.partition(":")
    worker = Worker()
    found = worker.program(name, seed)
    from fuzzing.kinds import kind
    from fuzzing.kinds.base import writer

    print("\n".join(writer(kind(name), seed).statements), "\n")
    print(found.text() if found else "no difference")
    return int(found is not None)


def show(found: Finding, log: Path | None) -> None:
    """Print a finding, and append it to the log."""
    print(found.text(), flush=True)
    if log is not None:
        with log.open("a") as file:
            file.write(found.text() + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; the exit code."""
    given = options(arguments)
    if given.replay:
        return replay(given.replay)
    seed = given.seed or secrets.token_hex(4)
    kinds = usable(given.kinds or NAMES)
    print(f"seed {seed}; kinds: {' '.join(kinds)}", flush=True)
    start = time.monotonic()
    pool = Pool(kinds, seed, given.jobs, start + given.seconds, given.programs, given.first)
    signatures: set[str] = set()
    for found in pool.run():
        if found.signature not in signatures:
            signatures.add(found.signature)
            show(found, given.log)
    summary(pool, len(signatures), time.monotonic() - start)
    return int(bool(signatures))


def summary(pool: Pool, found: int, seconds: float) -> None:
    """Print how much was run, and what is known."""
    total = sum(pool.counts.values())
    print(
        f"{total} programs in {seconds:.0f} s, {found} findings; "
        + ", ".join(f"{k} {n}" for k, n in pool.counts.items())
    )
    for reason, count in pool.reasons.most_common():
        print(f"known: {reason} ({count} times)")


if __name__ == "__main__":
    sys.exit(main())
