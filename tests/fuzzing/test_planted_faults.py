"""The fuzzer finds faults that are planted in rushlight: each within five minutes of one processor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzzing.faults import FAULTS

pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
MINUTES = 5


def programs(fault: str, at: Path) -> Iterator[tuple[str, float]]:
    """Programs that differ while the fault is planted, in another process, and its processor time.

    at: a file of which program runs: where the process ends within PyTorch, the search goes on behind that program.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    left, first = MINUTES * 60.0, 0
    while left > 0:
        command = [sys.executable, "-W", "ignore", "-m", "tests.fuzzing.faults", fault, str(left), str(first), str(at)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    program, seconds = line.split()
                    yield program, float(seconds) + MINUTES * 60 - left
                status = process.wait()
            finally:
                process.kill()
        if not status:
            return
        number, subject = map(int, at.read_text().split())
        assert status < 0, "the search broke off"
        assert not subject, f"rushlight ended the process at program {number}"
        first, left = number + 1, left - 60  # what it had used is not known


def differs_without_it(program: str) -> bool:
    """Whether the program differs in a rushlight without the fault."""
    from tools.fuzzing.judging import judge
    from tools.fuzzing.kinds import kind
    from tools.fuzzing.worker import Worker

    name, _, seed = program.partition(":")
    _, found = Worker().differences(kind(name), seed)
    return bool(judge(found, kind(name).ignored)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    for program, seconds in programs(fault, tmp_path / "at"):
        if not differs_without_it(program):
            print(f"{fault}: {program} after {seconds:.0f} s")
            return
    pytest.fail(f"not found in {MINUTES} minutes")
