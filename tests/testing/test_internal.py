"""Test cases written for `torch.testing._internal` are the same tests here, with the same outcomes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parity
CASES = Path(__file__).parent / "cases_of_pytorch.py"
UNDER_RUSHLIGHT = "from rushlight.compat import imports; imports.install(); import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def outcomes(*command: str) -> list[str]:
    """The lines of `unittest`, one for each test."""
    # Where CI is set, PyTorch writes its results as XML, by a package that is none of ours.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    run = subprocess.run([sys.executable, "-W", "ignore", *command, str(CASES), "-v"], capture_output=True, text=True,
                         env={**environment, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"})  # fmt: skip
    assert run.returncode == 0, run.stderr
    return sorted(line for line in run.stderr.splitlines() if line.startswith("test_"))


def test_the_same_tests_with_the_same_outcomes() -> None:
    pytest.importorskip("torch")
    found = outcomes("-c", UNDER_RUSHLIGHT)
    assert len(found) > 35
    assert found == outcomes()
