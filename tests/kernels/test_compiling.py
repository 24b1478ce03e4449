"""Kernels are compiled once, by one process, and that is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rushlight

PACKAGE = Path(rushlight.__file__).parent


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    """With a compiler that notes when it is called, and is slow."""
    compiler = tmp_path / "c++"
    compiler.write_text(
        "#!/bin/sh\necho started >> '" + str(tmp_path / "calls") + "'\nsleep 0.3\n"
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n'
    )
    compiler.chmod(0o755)
    env = {**os.environ, "CXX": str(compiler), "RUSHLIGHT_CACHE": str(tmp_path / "cache"), "RUSHLIGHT_NATIVE": "1"}
    program = (
        "from rushlight.kernels.native import loader as l\n"
        "folder, c = l.cache_folder(), l.find_compiler(); f = l._flag_sets()[0]; file = l._file(folder, c, f)\n"
        "l._ensure(c, f, file)\nimport os; assert os.path.exists(file)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=env, stderr=subprocess.PIPE, text=True) for _ in "ab"
    ]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    sources = len(list((PACKAGE / "kernels" / "native").glob("*.cpp")))
    assert len((tmp_path / "calls").read_text().splitlines()) == sources + 1
    assert sum("rushlight: compiling its kernels into" in text for text in said) == 1
    assert all(text.count("\n") <= 1 and text.startswith("rushlight: ") for text in said if text)
