"""The scripts in `examples/` run, in small form, and say what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SAYS = {
    "where_it_goes.py": "open report.html",
    "below_a_budget.py": "the same losses: True",
    "on_disk.py": "in bfloat16",
    "optimizer_in_backward.py": "the same losses: True",
    "before_it_runs.py": "largest batch within twice that:",
}


def test_every_example_is_listed_and_run() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(SAYS)
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}]({name})" in table for name in SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / name), "192"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
    if name == "on_disk.py":
        figures = {line[:16].strip(): float(line[16:].split()[0]) for line in done.stdout.splitlines()}
        assert min(figures, key=figures.__getitem__) != "in memory"
        assert figures["on disk"] < figures["in memory"] > figures["in bfloat16"]
