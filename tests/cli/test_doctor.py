"""``rushlight doctor``: complete, quick, and with advice where something is wrong."""

from __future__ import annotations

import json

import pytest

from rushlight.cli import doctor
from rushlight.kernels.native import loader


def test_json_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"machine", "software", "blas", "native kernels", "measured", "advice"} <= set(facts)
    assert all(value > 0 for value in facts["measured"].values())


def test_the_tables_name_what_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--no-measure"]) == 0
    out = capsys.readouterr().out
    for word in ("numpy", "core type", "native kernels", "threads"):
        assert word in out


def test_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = doctor.in_use()
    facts["blas"] |= {"right": False, "core": "Haswell", "wanted": "SkylakeX", "how": "chosen by the library"}
    facts["native kernels"]["state"] = "no compiler"
    lines = doctor.advise(facts)
    assert "OPENBLAS_CORETYPE=SkylakeX" in lines[0] and "install g++" in lines[1]
    facts["native kernels"] |= {"state": "failed", "error": "exit 1: no such header"}
    assert "no such header" in doctor.advise(facts)[1]
    assert loader.tables() is loader.tables()


def test_threads_on_a_busy_machine_are_advised_against() -> None:
    facts = doctor.in_use()
    facts["blas"]["right"], facts["native kernels"]["state"] = True, "loaded"
    for load, threads, advised in ((100.0, 2, True), (0.0, 2, False), (100.0, 1, False), (None, 2, False)):
        facts["machine"]["load"], facts["blas"]["threads"] = load, threads
        assert any("OMP_NUM_THREADS=1" in line for line in doctor.advise(facts)) is advised
