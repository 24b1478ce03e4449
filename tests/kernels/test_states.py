"""The tests of memory and engine in the states that an installation may be in: without kernels, and from a wheel where there is no
compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("tests/engine", "tests/memory")


def passes(python: str, env: dict[str, str]) -> None:
    """Run the quick tests of memory and engine.  Raises AssertionError with what failed."""
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "-o",
        "pythonpath=.",
        "--durations=0",
        "--durations-min=30",
    ]
    done = subprocess.run(
        [python, "-m", "pytest", *options, *SUITES], cwd=ROOT, env=env, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_memory_and_engine_hold_without_kernels() -> None:
    passes(sys.executable, {**os.environ, "PYTHONPATH": str(ROOT / "src"), "RUSHLIGHT_NATIVE": "0"})


@pytest.mark.slow
def test_memory_and_engine_hold_from_a_wheel_without_a_compiler(tmp_path: Path, wheel: Path) -> None:
    """In an environment of its own, which has what is here but for rushlight, and that from the wheel."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )  # numpy, pytest: files of paths there do not count
    env = {
        "PATH": str(python.parent),
        "HOME": str(tmp_path),
        "RUSHLIGHT_CACHE": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    told = subprocess.run(
        [str(python), "-c", "import rushlight; from rushlight.kernels.native import loader; loader.tables();"
         "print(rushlight.__file__, loader.status()['state'], loader.status().get('compiler'))"],
        env=env, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert told.stdout.startswith(str(site)) and told.stdout.endswith("loaded came compiled\n"), told
    passes(str(python), env)
