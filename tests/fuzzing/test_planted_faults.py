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


def programs(fault: str) -> Iterator[tuple[str, float]]:
    """Programs that differ while the fault is planted, in another process, and its processor time."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzzing.faults", fault, str(MINUTES * 60)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                program, seconds = line.split()
                yield program, float(seconds)
            assert process.wait() == 0, "the search broke off"
        finally:
            process.kill()


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
def test_a_planted_fault_is_found(fault: str) -> None:
    for program, seconds in programs(fault):
        if not differs_without_it(program):
            print(f"{fault}: {program} after {seconds:.0f} s")
            return
    pytest.fail(f"not found in {MINUTES} minutes")
