"""A report of a bug names what runs: rushlight."""

from __future__ import annotations

import sys

import pytest

import rushlight as torch
from rushlight.compat import collect_env


def test_a_report_says_what_runs_here(capsys: pytest.CaptureFixture[str]) -> None:
    torch.utils.collect_env.main()
    shown = capsys.readouterr().out
    first = f"PyTorch version: rushlight {torch.version.__version__}, with the interface of PyTorch "
    assert first in shown and "Is CUDA available: False" in shown
    assert sys.version.split()[0] in shown and "[pip3] numpy==" in shown
    assert collect_env.get_pretty_env_info() in shown


def test_fields_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch.utils.collect_env")
    assert collect_env.SystemEnv._fields == theirs.SystemEnv._fields
    known = theirs.pretty_str(theirs.SystemEnv(*collect_env.get_env_info()))
    labels = [line.partition(":")[0] for line in known.splitlines() if ": " in line]
    assert {line.partition(":")[0] for line in collect_env.get_pretty_env_info().splitlines() if ": " in line} <= set(
        labels
    )


def test_programs_that_are_not_there_are_not_collected() -> None:
    assert collect_env._first_line("no-such-program-here") is None
    assert collect_env._first_line(sys.executable, "-c", "raise SystemExit(1)") is None
    assert "Clang version: Could not collect" in collect_env.pretty_str(
        collect_env.get_env_info()._replace(clang_version=None)
    )
