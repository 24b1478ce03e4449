"""The bench: workloads as users write them, each library in fresh processes in turns, with time and memory.

    python benchmarks/bench.py [--only NAME or FAMILY ...] [--repeats N] [--seconds N] [--threads N]
                               [--json FILE] [--compare OLD] [--picture FILE] [--list]

Needs torch in the environment, and Linux.  Of each workload: the median over the processes of the median seconds of a step;
the peak of resident memory above that after the import; whether the losses of the first steps agree; and the least time
that the machine would need, from what the step has to do (floating-point operations at the speed of a large product, bytes
of results made at the speed of memory, calls at that of NumPy's smallest).
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rushlight
from pairs import human
from workloads import WORKLOADS, Workload

HERE = Path(__file__).resolve().parent
LIBRARIES = ("rushlight", "torch")
LONGEST = 300  # seconds for one process


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="workloads or families")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each library (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="how long each process repeats its step (default: 1)"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="figures of another run, beside these")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios as SVG")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    return parser.parse_args()


def chosen(only: list[str] | None) -> list[Workload]:
    """The workloads of the names or families."""
    known = {*WORKLOADS, *(w.family for w in WORKLOADS.values())}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise SystemExit(f"bench: there is no {', '.join(unknown)}; --list says what there is")
    return [w for w in WORKLOADS.values() if not only or w.name in only or w.family in only]


def run(library: str, name: str, options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """One process."""
    python = [sys.executable, "-W", "ignore", str(HERE / "one_workload.py")]
    command = [*python, library, name, str(options.threads), str(options.seconds), *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {LONGEST} s"}  # 16 bits on a processor without them, say
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(workload: Workload, options: argparse.Namespace, machine: dict[str, float]) -> dict[str, Any]:
    """Both libraries in turns; who is first changes."""
    row: dict[str, Any] = {"name": workload.name, "family": workload.family, "title": workload.title}
    found: dict[str, list[dict[str, Any]]] = {library: [] for library in LIBRARIES}
    for turn in range(options.repeats):
        for library in LIBRARIES[:: 1 if turn % 2 else -1]:
            done = run(library, workload.name, options)
            if "error" in done:
                return row | {"error": f"{library}: {done['error']}"}
            found[library].append(done)
    for library, runs in found.items():
        row[library] = {key: statistics.median(r[key] for r in runs) for key in ("seconds", "peak")}
    row["time"] = row["rushlight"]["seconds"] / row["torch"]["seconds"]
    row["memory"] = max(row["rushlight"]["peak"], 1 << 20) / max(row["torch"]["peak"], 1 << 20)  # less is noise
    row["apart"] = apart(found["rushlight"][0]["losses"], found["torch"][0]["losses"])
    row["agrees"] = workload.same is None or row["apart"] <= workload.same
    work = run("rushlight", workload.name, options, "--work")
    row["least"] = None if "error" in work else least(work, machine)
    return row


def apart(ours: list[float], theirs: list[float]) -> float:
    """The largest difference of losses, of the first one."""
    return max(abs(a - b) for a, b in zip(ours, theirs)) / max(abs(theirs[0]), 1e-6)


def least(work: dict[str, float], machine: dict[str, float]) -> float:
    """Seconds that the machine needs at least."""
    return work["flops"] / machine["flops"] + work["bytes"] / machine["bytes"] + work["calls"] * machine["call"]


def best_of(function: Any, repeats: int = 7) -> float:
    """Seconds of the fastest of some calls."""

    def once() -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    return min(once() for _ in range(repeats))


def speeds(threads: int) -> dict[str, float]:
    """Of this machine: floating-point operations a second, bytes a second, seconds for a call."""
    rushlight.set_num_threads(threads)
    a, big = rushlight.randn(1536, 1536), rushlight.randn(1 << 24)
    out, few, sum_ = rushlight.empty_like(big), np.ones(1), np.empty(1)
    calls = best_of(lambda: [np.add(few, few, sum_) for _ in range(1000)])
    return {
        "flops": 2 * 1536**3 / best_of(lambda: a @ a),
        "bytes": 2 * big.nbytes / best_of(lambda: out.copy_(big)),
        "call": calls / 1000,
    }


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def cells(row: dict[str, Any], old: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    if "error" in row:
        return (row["title"], row["error"], "", "", "", "", "")
    before = old.get(row["name"], {}).get("time")
    note = f"{before:.2f} before" if before else ""
    note += "" if row["agrees"] else f" LOSSES DIFFER by {row['apart']:.0e}"
    reached = "" if row["least"] is None else f"{row['least'] / row['rushlight']['seconds']:.2f}"
    return (row["title"], human(row["rushlight"]["seconds"], "s"), human(row["torch"]["seconds"], "s"), f"{row['time']:.2f}",
            f"{row['memory']:.2f}", reached, note.strip())  # fmt: skip


def table(rows: list[dict[str, Any]], old: dict[str, Any]) -> str:
    """Everything, by family, as a Markdown table."""
    lines = ["| | rushlight | PyTorch | time | memory | of the limit | |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    family = ""
    for row in rows:
        if row["family"] != family:
            family = row["family"]
            lines.append(f"| **{family}** | | | | | | |")
        lines.append("| " + " | ".join(cells(row, old)) + " |")
    done = [row for row in rows if "error" not in row]
    if done:
        times, memories = [r["time"] for r in done], [r["memory"] for r in done]
        lines += ["", f"{len(done)} workloads; geometric means: {mean(times):.2f} of PyTorch's time, {mean(memories):.2f} of its memory; "
                  f"slower than PyTorch: {sum(t > 1 for t in times)}, with more memory: {sum(m > 1 for m in memories)}."]  # fmt: skip
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]]) -> str:
    """The ratios as bars, fastest first: SVG.  Left of the line rushlight is ahead."""
    done = sorted((row for row in rows if "error" not in row), key=lambda row: float(row["time"]))
    high, left, unit = 18, 250, 260
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 2 * unit + 60}" height="{high * len(done) + 50}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="{left}" y="16" fill="#333">of PyTorch\'s time (bar) and memory (dot); 1 is the line</text>']  # fmt: skip
    for i, row in enumerate(done):
        y, wide = 30 + i * high, min(row["time"], 2.0) * unit
        colour = "#2b8a6e" if row["time"] <= 1 else "#c2553a"
        parts.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end" fill="#222">{row["name"]}</text>'
                     f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{high - 5}" fill="{colour}"/>'
                     f'<text x="{left + wide + 6:.1f}" y="{y + 11}" fill="#222">{row["time"]:.2f}</text>'
                     f'<circle cx="{left + min(row["memory"], 2.0) * unit:.1f}" cy="{y + 6}" r="4" fill="#1f3b73" stroke="#fff"/>')  # fmt: skip
    line = left + unit
    parts.append(f'<path d="M{line} 24V{30 + high * len(done)}" stroke="#222" stroke-dasharray="3 3"/></svg>\n')
    return "".join(parts)


def processor() -> str:
    """The name of the processor."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main() -> int:
    options = arguments()
    workloads = chosen(options.only)
    if options.list:
        print("\n".join(f"{w.family:<11} {w.name:<24} {w.title}" for w in workloads))
        return 0
    old = {row["name"]: row for row in json.loads(options.compare.read_text())["rows"]} if options.compare else {}
    machine = speeds(options.threads)
    rows = []
    for i, workload in enumerate(workloads):
        rows.append(measure(workload, options, machine))
        said = rows[-1].get("error") or f"time {rows[-1]['time']:.2f}, memory {rows[-1]['memory']:.2f}"
        print(f"[{i + 1}/{len(workloads)}] {workload.name}: {said}", file=sys.stderr, flush=True)
    print(f"\nrushlight {rushlight.__version__}, {processor()}, {options.threads} threads, {machine['flops'] / 1e9:.0f} GFLOP/s, "
          f"{machine['bytes'] / 1e9:.1f} GB/s; medians of {options.repeats} processes of each library, in turns\n")  # fmt: skip
    print(table(rows, old))
    if options.json:
        options.json.write_text(json.dumps({"machine": machine | {"processor": processor()}, "rows": rows}, indent=1))
    if options.picture:
        options.picture.write_text(picture(rows))
    return 0 if all(row.get("agrees") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
