"""Proof that a change of the house changes no behaviour: every operator's samples in every mode, written down to compare.

    python tools/replay.py --out before.jsonl          # of the package on PYTHONPATH, or of --source DIRECTORY
    python tools/replay.py --compare before.jsonl after.jsonl
    python tools/replay.py --out beside.jsonl --beside thread   # while another thread is in every mode: equal to `before.jsonl`

Each line is one call in one mode: dtype, shape, strides, values and version of its results, the graph (names, next
functions, what is saved), what hooks are given, which operators run, what backward gives and what is raised. Two files are
equal where two commits behave alike. With PyTorch installed the samples of its own tests are replayed too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write or compare; the exit status is 1 where two files differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write what is found, a line of JSON for each call and mode")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="say where two such files differ")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="the package that is replayed")
    parser.add_argument("--only", default="", help="cases whose text has this in it")
    parser.add_argument(
        "--database", type=int, default=2, help="samples for each operator of PyTorch's tests, if installed"
    )
    parser.add_argument(
        "--beside", default="nothing", help="a state of the process (tools/replaying/states.py) around all"
    )
    parser.add_argument("--show", type=int, default=20, help="how many differences are shown")
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare, options.show)
    if not options.out:
        parser.error("one of --out and --compare is needed")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path[:0] = [str(options.source.resolve()), str(ROOT)]
    from tools.replaying import states

    with options.out.open("w", encoding="utf-8") as file, states.STATES[options.beside]():
        for line in lines(options.only, options.database):
            file.write(json.dumps(line) + "\n")
    return 0


def lines(only: str, per_operator: int) -> Iterator[dict[str, Any]]:
    """What is written down."""
    from tools.replaying import cases, modes

    for case in cases.table():
        if only in case.name:
            for mode in modes.SHORT if case.name.endswith("]") and "[" in case.name.split()[-1] else modes.MODES:
                yield modes.replayed(case, mode)
    if per_operator and installed("torch"):
        for case in cases.database(per_operator):
            if only in case.name:
                for mode in modes.MODES:
                    yield modes.replayed(case, mode)


def installed(name: str) -> bool:
    """Whether a package can be imported."""
    import importlib.util

    return importlib.util.find_spec(name) is not None


def read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The lines of a file by case and mode."""
    found = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(line.pop("case"), line.pop("mode")): line for line in found}


def differences(a: dict[Any, Any], b: dict[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """(key, of a, of b) where two replays differ; None for what one of them lacks."""
    return [(key, a.get(key), b.get(key)) for key in {**a, **b} if a.get(key) != b.get(key)]


def compare(first: Path, second: Path, show: int) -> int:
    """Print where two files differ."""
    a, b = read(first), read(second)
    found = differences(a, b)
    for (case, mode), was, now in found[:show]:
        print(f"{case} ({mode})\n  {json.dumps(was)[:600]}\n  {json.dumps(now)[:600]}")
    print(f"{len(a)} and {len(b)} lines, {len(found)} differ", dict(Counter(mode for (_, mode), _, _ in found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
