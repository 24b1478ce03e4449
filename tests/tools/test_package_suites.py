"""What is said of other packages' tests is what pytest reported of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from tools import package_suites as suites

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest">
  <testcase classname="a.T" name="passes" />
  <testcase classname="a.T" name="fails"><failure message="no">...</failure></testcase>
  <testcase classname="b" name="breaks[1]"><error message="no" /></testcase>
  <testcase classname="b" name="skips"><skipped message="why" /></testcase>
  <testcase classname="b" name="passes"><system-out>failure</system-out></testcase>
</testsuite></testsuites>
"""
TOLD = {
    "a.T::passes": "passed",
    "a.T::fails": "failed",
    "b::breaks[1]": "failed",
    "b::skips": "skipped",
    "b::passes": "passed",
}


def test_a_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "outcomes.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert suites.told(report) == TOLD


def test_what_both_fail_is_held_against_nobody() -> None:
    theirs = {**TOLD, "a.T::fails": "passed", "only there": "passed"}
    assert suites.failed_alone(TOLD, theirs) == ["a.T::fails"]
    assert suites.failed_alone(TOLD, TOLD) == suites.failed_alone(theirs, TOLD) == []


def test_reasons_stand_where_outcomes_differ() -> None:
    theirs = {**TOLD, "a.T::fails": "passed"}
    assert suites.line("einops 1.0", TOLD, theirs, "why") == "| einops 1.0 | 5 | 3 | 2 | 1 | why |"
    assert suites.line("einops 1.0", TOLD, TOLD, "why") == "| einops 1.0 | 5 | 2 | 2 | 0 |  |"


def test_lines_take_the_place_of_those_of_their_package() -> None:
    page = suites.with_rows("", ["| zuko 1.0 | 1 |", "| einops 0.8 | 2 |", "| unknown 3 | 3 |"])
    assert page == suites.HEAD + "| einops 0.8 | 2 |\n| zuko 1.0 | 1 |\n"
    assert suites.with_rows(page, ["| einops 0.9 | 4 |"]) == suites.HEAD + "| einops 0.9 | 4 |\n| zuko 1.0 | 1 |\n"


def test_the_page_has_lines_of_known_packages_alone() -> None:
    page = suites.PAGE.read_text(encoding="utf-8")
    assert suites.with_rows(page, []) == page and len(page.splitlines()) > len(suites.HEAD.splitlines())


def test_an_archive_becomes_a_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "einops-1.0.tar.gz", "w:gz") as packed:
        told = tarfile.TarInfo("einops-1.0/einops/tests/test_one.py")
        told.size = 4
        packed.addfile(told, io.BytesIO(b"pass"))
    (tmp_path / "suites").mkdir()
    suites.unpacked(tmp_path / "einops-1.0.tar.gz", tmp_path / "suites" / "einops-1.0")
    found = suites.source(tmp_path / "no python is asked", "einops", "1.0", tmp_path / "suites")
    assert (found / "einops" / "tests" / "test_one.py").read_text(encoding="utf-8") == "pass"


def test_tests_that_leave_no_report_are_no_line(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
    silent.chmod(0o755)
    with pytest.raises(RuntimeError, match="left no report"):
        suites.outcomes(silent, "tests", tmp_path)


def test_the_oracle_does_not_see_the_package_that_is_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PYTHONPATH of the shell would bring this package in place of PyTorch; what is said here alone counts."""
    told = tmp_path / "python"
    report = tmp_path / "outcomes.xml"
    told.write_text(
        f"#!/bin/sh\necho \"<t><testcase classname='p' name='$PYTHONPATH'/></t>\" > {report}\n", encoding="utf-8"
    )
    told.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", "src")
    assert suites.outcomes(told, "tests", tmp_path) == {"p::": "passed"}
    assert suites.outcomes(told, "tests", tmp_path, PYTHONPATH="shared") == {"p::shared": "passed"}


def test_tests_that_start_python_start_the_same(tmp_path: Path) -> None:
    python = tmp_path / "python"
    report = tmp_path / "outcomes.xml"
    python.write_text(
        f"#!/bin/sh\necho \"<t><testcase classname='p' name='$(command -v python)'/></t>\" > {report}\n",
        encoding="utf-8",
    )
    python.chmod(0o755)
    assert suites.outcomes(python, "tests", tmp_path) == {f"p::{python}": "passed"}
