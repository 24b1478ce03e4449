"""The native layer itself: building, caching, refusing, forking, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.native import loader

ROOT = str(Path(K.__file__).parents[2])
needs_compiler = pytest.mark.skipif(loader.find_compiler() is None, reason="no C++ compiler here")
FIRST_USE = """
import numpy as np
from rushlight import kernels
y = kernels.softmax(np.ones((2, 4), 'f4'), 1)
assert (y == 0.25).all()
print(kernels.native_status()['state'])
"""


QUICKLY = {"RUSHLIGHT_CXXFLAGS": "-O0"}  # a few seconds instead of twenty, where it is about files and not about speed


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": ROOT, **environment}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=120
    )


def test_importing_compiles_nothing(tmp_path: Path) -> None:
    done = python("import rushlight.kernels as k; print(k.native_status()['state'])", RUSHLIGHT_CACHE=str(tmp_path))
    assert done.stdout.strip() == "not loaded yet", done.stderr
    assert not list(tmp_path.iterdir())


def test_switched_off() -> None:
    done = python(FIRST_USE, RUSHLIGHT_NATIVE="0")
    assert done.stdout.strip() == "disabled", done.stderr


def test_without_a_compiler(tmp_path: Path) -> None:
    done = python(FIRST_USE, CXX="no-such-compiler", RUSHLIGHT_CACHE=str(tmp_path))
    assert done.stdout.strip() == "no compiler" and not done.stderr


def test_a_compiler_that_fails_is_asked_once(tmp_path: Path) -> None:
    script = tmp_path / "c++"
    script.write_text(f"#!/bin/sh\necho called >> {tmp_path}/log\necho no >&2\nexit 1\n")
    script.chmod(0o755)
    cache = tmp_path / "cache"
    for _ in range(2):
        done = python(FIRST_USE, CXX=str(script), RUSHLIGHT_CACHE=str(cache))
        assert done.stdout.strip() == "failed"
        *before, last = done.stderr.splitlines()
        assert last.startswith("rushlight: its kernels cannot be had") and "doctor" in last
        assert len(before) == (_ == 0) and all(line.startswith("rushlight: compiling") for line in before)
        calls = (tmp_path / "log").read_text().count("called")
        (tmp_path / "log").write_text("")
        assert calls > 0 if _ == 0 else calls == 0
    assert "exit 1: no" in next(cache.glob("*.failed")).read_text()


@pytest.mark.slow
@needs_compiler
def test_processes_that_start_together_share_one_library(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": ROOT, "RUSHLIGHT_CACHE": str(tmp_path), **QUICKLY}
    running = [
        subprocess.Popen([sys.executable, "-c", FIRST_USE], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [p.communicate(timeout=200)[0].strip() for p in running] == ["loaded", "loaded"]
    assert len(list(tmp_path.glob("*.so"))) == 1


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """A compiler that has the kernels done: what it links is the library in use."""
    if loader.library() is None:
        pytest.skip(f"no native kernels here: {K.native_status()}")
    script = tmp_path / "c++"
    script.write_text(
        f"#!/bin/sh\nfrom=/dev/null\nfor word; do\n  [ \"$word\" = -shared ] && from='{loader.library()}'\n"
        '  [ "$before" = -o ] && cp "$from" "$word"\n  before=$word\ndone\n'
    )
    script.chmod(0o755)
    return str(script)


def test_a_damaged_library_is_built_anew(tmp_path: Path, compiler: str) -> None:
    environment = {"RUSHLIGHT_CACHE": str(tmp_path / "cache"), "CXX": compiler}
    assert python(FIRST_USE, **environment).stdout.strip() == "loaded"
    library = next((tmp_path / "cache").glob("*.so"))
    library.write_bytes(b"\x7fELF cut short")
    assert python(FIRST_USE, **environment).stdout.strip() == "loaded"
    assert library.stat().st_size > 10_000


@pytest.mark.slow
@needs_compiler
def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = {"RUSHLIGHT_CACHE": str(blocked), "XDG_CACHE_HOME": str(blocked), "TMPDIR": str(tmp_path), **QUICKLY}
    assert python(FIRST_USE, **env).stdout.strip() == "loaded"
    folder = next(tmp_path.glob("rushlight-*"))
    assert folder.stat().st_mode & 0o077 == 0


@needs_compiler
def test_subnormals_survive_loading() -> None:
    K.softmax(np.ones((2, 2), "f4"), 1)
    assert np.float32(1e-40) * np.float32(1) != 0


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_may_compute() -> None:
    code = """
import os, signal, numpy as np
from rushlight import kernels
kernels.set_num_threads(2)
x = np.random.default_rng(0).standard_normal((400, 1000)).astype('f4')
want = kernels.softmax(x, 1)
pid = os.fork()
if not pid:
    signal.alarm(30)
    for _ in range(20):
        same = (kernels.softmax(x, 1) == want).all()
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert (kernels.softmax(x, 1) == want).all()
print('fine')
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_many_python_threads_at_once(path: str) -> None:
    K.set_num_threads(3)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((200, 900)).astype("f4") for _ in range(6)]
    want = [K.softmax(x, 1) for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(40):
            if not np.array_equal(K.softmax(inputs[i], 1), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_number_of_threads() -> None:
    K.set_num_threads(3)
    assert K.get_num_threads() == 3
    with pytest.raises(ValueError, match="positive"):
        K.set_num_threads(0)
