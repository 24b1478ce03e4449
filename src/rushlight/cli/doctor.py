"""``rushlight doctor``: what this machine offers, what of it is in use, what it measured, what to change."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight import cpu, kernels
from rushlight.backends import blas
from rushlight.cli.parsers import Parser
from rushlight.kernels import products
from rushlight.kernels.matrices import matmul
from rushlight.kernels.native import loader
from rushlight.version import __version__

Facts = dict[str, dict[str, Any]]
DESCRIPTION = "Say what this machine offers, what of it is in use, what it measured, and what to change."


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report; exit status 0, also where there is advice."""
    parser = Parser(prog="rushlight doctor", description=DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of tables")
    parser.add_argument("--no-measure", action="store_true", help="say what is in use and measure nothing")
    options = parser.parse_args(argv)
    facts = in_use()
    if not options.no_measure:
        facts["measured"] = measured()
    advice = advise(facts)
    if options.json:
        print(json.dumps({**facts, "advice": advice}, indent=1, default=str))
    else:
        print_tables(facts, advice)
    return 0


def in_use() -> Facts:
    """Versions, BLAS, native kernels, optional packages."""
    kernels.softmax(np.zeros((1, 2), np.float32), 1)  # makes the loader decide
    info = blas.info()
    ways = products.ways()
    return {
        "machine": {
            "processor": cpu.description().get("model name", platform.processor() or cpu.machine()),
            "cores": cpu.count(),
            "instructions": {4: "AVX-512", 3: "AVX2", 2: "SSE4"}.get(cpu.level(), cpu.machine()),
            "memory": _memory(),
            "load": _load(),
        },
        "software": {
            "rushlight": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "ml_dtypes": _version("ml_dtypes"),
        }
        | {name: _version(name) or "not installed" for name in ("scipy", "cupy", "safetensors", "torch")},
        "blas": info,
        "native kernels": {
            "threads": kernels.get_num_threads(),
            "bfloat16_by": ways[0].name if ways else "float32",
            **loader.status(),
        },
    }


def _version(name: str) -> str | None:
    """An installed package's version without importing it."""
    from importlib import metadata

    if importlib.util.find_spec(name) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "version unknown"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.1f} GiB"


def _load() -> float | None:
    """How many processes wanted a core in the last minute, on average; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def _seconds(call: Callable[[], Any], budget: float = 0.25) -> float:
    """Median time of a call, measured for about ``budget`` seconds after one to warm up."""
    call()
    times: list[float] = []
    stop = time.perf_counter() + budget
    while len(times) < 3 or (time.perf_counter() < stop and len(times) < 50):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _without_native(call: Callable[[], Any]) -> float:
    """`_seconds` of a kernel's NumPy reference."""
    kept = loader._tables
    loader._tables = {}
    try:
        return _seconds(call)
    finally:
        loader._tables = kept


def measured() -> dict[str, Any]:
    """A few short measurements on this machine as it is now, other processes included."""
    rng = np.random.default_rng(0)
    n = 1024
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in "ab")
    product, halves = np.empty_like(a), [y.astype(products.BFLOAT16) for y in (a, b)]
    x = rng.standard_normal((1024, 1024), dtype=np.float32)
    big = np.ones(16_000_000, np.float32)
    copy = np.empty_like(big)
    p, g, m, v = (np.full(4_000_000, value, np.float32) for value in (1.0, 0.1, 0.2, 0.3))

    def softmax() -> Any:
        return kernels.softmax(x, 1)

    def adam() -> None:
        kernels.adam(p, g, m, v, None, 5, 1e-3, 0.9, 0.999, 1e-8)

    return {
        "gemm_gflops_float32": 2 * n**3 / _seconds(lambda: np.matmul(a, b, out=product)) / 1e9,
        "gemm_gflops_bfloat16": 2 * n**3 / _seconds(lambda: matmul(*halves)) / 1e9,
        "memory_gb_per_s": 2 * big.nbytes / _seconds(lambda: np.copyto(copy, big)) / 1e9,
        "softmax_ms": _seconds(softmax) * 1e3,
        "softmax_reference_ms": _without_native(softmax) * 1e3,
        "adam_4m_ms": _seconds(adam) * 1e3,
        "adam_4m_reference_ms": _without_native(adam) * 1e3,
    }


def advise(facts: Facts) -> list[str]:
    """What would make this installation faster, a line each."""
    lines = []
    found, native = facts["blas"], facts["native kernels"]
    if not found["right"]:
        lines.append(
            f"BLAS uses its {found['core']} kernels on a processor with AVX-512: import rushlight before numpy, "
            f"or set OPENBLAS_CORETYPE={found['wanted']} ({found['how']})."
        )
    if native["state"] == "no compiler":
        lines.append(
            "No C++ compiler: install g++ (Debian: apt install g++) and some steps become 3 to 10 times faster."
        )
    elif native["state"] == "failed":
        lines.append(f"The native kernels could not be compiled: {str(native.get('error', ''))[-300:].strip()}")
    elif native["state"] == "disabled":
        lines.append("The native kernels are switched off: unset RUSHLIGHT_NATIVE to use them.")
    if (found["threads"] or 1) > cpu.count():
        lines.append(
            f"BLAS has {found['threads']} threads on {cpu.count()} cores: set OPENBLAS_NUM_THREADS={cpu.count()}."
        )
    load = facts["machine"]["load"]
    if load is not None and load > 0.8 * cpu.count() and (found["threads"] or 1) > 1:
        lines.append(
            f"The machine is busy ({load} processes on {cpu.count()} cores): threads of BLAS that wait for each other then take "
            "up to ten times as long. OMP_NUM_THREADS=1 in the environment is quicker while others run."
        )
    return lines


def print_tables(facts: Facts, advice: list[str]) -> None:
    """The report for people."""
    found, native = facts["blas"], facts["native kernels"]
    _table("machine", facts["machine"])
    _table("software", facts["software"])
    rows = {
        "library": found["library"],
        "version": found["version"],
        "core type": f"{found['core'] or 'not known'} ({found['how']})",
        "threads": found["threads"] or "not known",
    }
    _table("blas", rows)
    shown = {key.replace("_", " "): value for key, value in native.items() if key != "flags"}
    _table("native kernels", shown)
    if "measured" in facts:
        _table("measured", _measured_rows(facts["measured"]))
    print()
    for line in advice or ["Nothing to improve."]:
        print(("! " if advice else "") + line)


def _measured_rows(m: dict[str, Any]) -> dict[str, str]:
    def pair(name: str) -> str:
        ours, plain = m[f"{name}_ms"], m[f"{name}_reference_ms"]
        return f"{ours:.2f} ms (NumPy alone {plain:.2f} ms, {plain / ours:.1f} times)"

    return {
        "matrix product": f"{m['gemm_gflops_float32']:.0f} GFLOP/s float32, {m['gemm_gflops_bfloat16']:.0f} bfloat16",
        "memory": f"{m['memory_gb_per_s']:.1f} GB/s copied",
        "softmax 1024 x 1024": pair("softmax"),
        "Adam, 4 M parameters": pair("adam_4m"),
    }


def _table(title: str, rows: dict[str, Any]) -> None:
    print(f"\n{title}")
    for key, value in rows.items():
        print(f"  {key:<22}{value}")


if __name__ == "__main__":
    sys.exit(main())
