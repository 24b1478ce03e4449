"""Programs written for PyTorch run as they are, and reach its losses.

What PyTorch reaches is in `recorded.json`, which `cases.py` writes; where PyTorch is installed it is asked again.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("cases_of_programs", HERE / "cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
RECORDED = json.loads(cases.RECORDED.read_text())
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent.parent / "src")}


def run(command: list[str], **environment: str) -> list[float]:
    """The losses that a command prints under `rushlight run`."""
    started = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "rushlight",
        "run",
        str(HERE / "scripts" / "same_draws.py"),
        *command,
    ]
    done = subprocess.run(started, text=True, capture_output=True, env=ENVIRONMENT | environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return cases.losses(done.stdout)


def apart(found: list[float], expected: list[float]) -> float:
    """The largest difference, beside 1 or the number itself."""
    assert len(found) == len(expected) and found
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("case", cases.CASES)
def test_losses_are_those_of_pytorch(case: str, tmp_path: Path) -> None:
    found = [loss for command in cases.commands(case, str(tmp_path)) for loss in run(command)]
    assert apart(found, RECORDED["losses"][case]) < cases.CASES[case]


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.SLOW)
def test_losses_of_longer_programs_are_those_of_pytorch(case: str, tmp_path: Path) -> None:
    found = [loss for command in cases.commands(case, str(tmp_path)) for loss in run(command)]
    assert apart(found, RECORDED["losses"][case]) < cases.SLOW[case]


@pytest.mark.parity
def test_recorded_losses_are_what_pytorch_reaches_now() -> None:
    pytest.importorskip("torch")
    for case, found in cases.losses_of_cases(cases.CASES).items():
        assert apart(found, RECORDED["losses"][case]) < cases.CASES[case], case


@pytest.mark.parity
def test_a_checkpoint_of_pytorch_is_evaluated(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    save, look = cases.commands(
        "classify --epochs 1 --save TMP/a.pt; classify --resume TMP/a.pt --evaluate", str(tmp_path)
    )
    theirs = cases.run_all([save, look])
    assert apart(run(look), theirs[1]) < 1e-5 and len(theirs[0]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.BANDS)
def test_with_random_numbers_of_its_own_a_program_ends_in_the_band_of_pytorchs_seeds(name: str) -> None:
    low, high = RECORDED["bands"][name]
    room = max(high - low, 0.02 * abs(high), 1e-3)
    for seed in (1, 2, 3):
        (command,) = cases.commands(f"{name} --seed {seed}", "")
        assert low - room <= run(command, OWN_DRAWS="1")[-1] <= high + room
