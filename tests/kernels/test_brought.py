"""Kernels that come compiled in a wheel."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rushlight import cpu
from rushlight import kernels as K
from rushlight.kernels.native import compiler, loader

ROOT = Path(K.__file__).parents[3]
FIRST_USE = """
import sys, numpy as np
from rushlight.kernels.native import loader
loader.BROUGHT = sys.argv[1]
from rushlight import kernels
assert loader.built()
assert (kernels.softmax(np.ones((2, 4), 'f4'), 1) == 0.25).all()
print(loader.status()['state'], loader.status().get('compiler'))
"""
here = pytest.mark.skipif(
    loader.library() is None or loader._HEAD != compiler.HEAD or (cpu.machine(), cpu.level()) not in compiler.TARGETS,
    reason="no kernels here, or for no machine that wheels are for",
)


def first_use(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "CXX": "no-such-compiler", "RUSHLIGHT_CACHE": str(cache)}
    env.pop("RUSHLIGHT_CXXFLAGS", None)
    return subprocess.run(
        [sys.executable, "-c", FIRST_USE, str(folder)], env=env, capture_output=True, text=True, timeout=100
    )


@here
def test_kernels_that_came_compiled_need_no_compiler_and_no_cache(tmp_path: Path) -> None:
    folder, cache = tmp_path / "compiled", tmp_path / "cache"
    folder.mkdir()
    shutil.copy(loader.library(), folder / compiler.in_wheel(cpu.machine(), cpu.level()))
    done = first_use(folder, cache)
    assert done.stdout.strip() == "loaded came compiled", done.stderr
    assert not cache.exists() or not list(cache.iterdir())


@here
def test_a_damaged_file_of_the_wheel_is_passed_over_and_left(tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    folder.mkdir()
    for level in range(cpu.level() + 1):
        if (cpu.machine(), level) in compiler.TARGETS:
            (folder / compiler.in_wheel(cpu.machine(), level)).write_bytes(b"\x7fELF cut short")
    before = sorted(folder.iterdir())
    done = first_use(folder, tmp_path / "cache")
    assert done.stdout.split()[0] in ("no", "failed"), done.stderr  # "no compiler"
    assert sorted(folder.iterdir()) == before


def test_who_builds_a_wheel_needs_neither_rushlight_nor_numpy() -> None:
    tree = ast.parse(Path(compiler.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


@pytest.mark.slow
@here
def test_a_wheel_is_the_whole_product(tmp_path: Path, wheel: Path) -> None:
    """Built, unpacked, and used where there is no compiler: numbers, counted bytes, a report and a budget."""
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl") and wheel.stat().st_size < 8 << 20
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = tmp_path / "train.py"
    script.write_text(
        "import rushlight as torch\nfrom rushlight import memory\nx = torch.rand(1000, 1000, requires_grad=True)\n"
        "x.exp().sum().backward()\nassert memory.peak() > 8_000_000, memory.peak()\n"
    )
    env = {
        "PYTHONPATH": str(tmp_path / "site"),
        "PATH": "",
        "RUSHLIGHT_CACHE": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    for command in (["doctor", "--no-measure"], ["run", "--memory-budget", "100MB", str(script)],
                    ["memory", "report", "-o", str(tmp_path / "report.html"), str(script)]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "rushlight", *command], env=env, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, (command, done.stderr)
        assert "compiling" not in done.stderr
        assert command[0] != "doctor" or "came compiled" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 50_000
