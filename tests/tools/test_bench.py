"""The bench: what its workloads are, what it prints of figures, and that each library runs one."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rushlight

FOLDER = Path(rushlight.__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("bench")


def row(name: str, time: float, memory: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "family": "vision", "title": name.upper(), "rushlight": {"seconds": time, "peak": 1},
            "torch": {"seconds": 1.0, "peak": 1}, "time": time, "memory": memory, "apart": 0.0, "agrees": True,
            "least": time / 4, **more}  # fmt: skip


def test_the_bench_is_complete(bench: Any) -> None:
    workloads = bench.chosen(None)
    assert len(workloads) >= 60
    assert len({w.title for w in workloads}) == len(workloads)
    assert {w.family for w in bench.chosen(["higher", "lstm"])} == {"higher", "recurrent"}
    with pytest.raises(SystemExit, match="there is no nonsense"):
        bench.chosen(["nonsense"])


def test_a_table_says_what_is_behind_and_what_differs(bench: Any) -> None:
    rows = [row("a", 0.5, 0.25), row("b", 2.0, 1.0, agrees=False, apart=0.1), {**row("c", 1, 1), "error": "torch: no"}]
    text = bench.table(rows, {"a": {"time": 0.7}})
    assert "| A | 500 ms | 1 s | 0.50 | 0.25 | 0.25 | 0.70 before |" in text
    assert "LOSSES DIFFER by 1e-01" in text and "| C | torch: no |" in text
    assert "2 workloads; geometric means: 1.00 of PyTorch's time, 0.50 of its memory" in text
    assert "slower than PyTorch: 1, with more memory: 0" in text


def test_the_picture_has_a_bar_and_a_dot_for_each(bench: Any) -> None:
    found = ElementTree.fromstring(bench.picture([row("slow", 1.5, 1), row("fast", 0.5, 0.25)]))
    page, *bars = [e.get("width", "") for e in found.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars == ["130.0", "390.0"]  # the fastest first
    assert page == "100%"
    assert len(list(found.iter("{http://www.w3.org/2000/svg}circle"))) == 2


def test_the_least_time_counts_operations_bytes_and_calls(bench: Any) -> None:
    machine = {"flops": 10.0, "bytes": 100.0, "call": 0.5}
    assert bench.least({"flops": 20, "bytes": 100, "calls": 4}, machine) == 2 + 1 + 2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
@pytest.mark.parametrize("more", [[], ["--work"]])
def test_a_workload_runs_in_its_own_process(more: list[str]) -> None:
    command = [sys.executable, str(FOLDER / "one_workload.py"), "rushlight", "mlp_step", "1", "0.01", *more]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(found["losses"]) == 3 and found["losses"][0] > found["losses"][2]
    if more:
        assert found["flops"] == 32 * 2 * (2 * 64 * 128 + 3 * 128 * 128 + 3 * 128 * 10) and found["calls"] > 10
    else:
        assert found["seconds"] > 0 and found["steps"] >= 5
