"""Nothing stays on disk, however a process ends."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRAIN = """
import os, random, signal, sys, time
import rushlight as torch
from rushlight import nn, stores

directory = sys.argv[1]


def train(steps):
    model = nn.Sequential(*[nn.Linear(64, 64), nn.GELU()] * 4)
    store = stores.disk(directory, min_bytes=0, memory="64 KiB")
    for _ in range(steps):
        with store:
            loss = model(torch.randn(256, 64)).sum()
        assert store.stats()["put"] > 0
        loss.backward()
    return store


"""

KILLED = """
chance = random.Random(7)
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        train(10**6)
    time.sleep(0.002 + 0.04 * chance.random())
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert os.listdir(directory) == [], os.listdir(directory)
print("killed")
"""


def run(body: str, *args: Any) -> Any:
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # forked children have no others
    env = {**os.environ, **single, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", TRAIN + body, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240)


def test_ten_kills(tmp_path: Path) -> None:
    done = run(KILLED, tmp_path, 10)
    assert done.stdout == "killed\n", done.stderr


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    done = run(KILLED, tmp_path, 200)
    assert done.stdout == "killed\n", done.stderr


@pytest.mark.parametrize("end, code", [
    ("pass", 0), ("sys.exit(3)", 3), ("os._exit(4)", 4), ("raise KeyError('oops')", 1), ("os.abort()", -6),
    ("os.kill(os.getpid(), signal.SIGTERM)", -15),
])  # fmt: skip
def test_other_ends(tmp_path: Path, end: str, code: int) -> None:
    done = run(f"store = train(3)\nwith store:\n    y = torch.randn(9, 64).requires_grad_().exp()\n{end}\n", tmp_path)
    assert done.returncode == code, done.stderr
    assert list(tmp_path.iterdir()) == []


WORKERS = """
import multiprocessing, os, sys, time
import rushlight as torch
from rushlight import memory, nn, stores


def work(directory, told):
    model = nn.Sequential(*[nn.Linear(64, 64), nn.GELU()] * 4)
    while True:
        with stores.disk(directory, min_bytes=0, memory="64 KiB"):
            loss = model(torch.randn(256, 64)).sum()
        told.set()
        loss.backward()


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    for end in ("terminate", "kill"):
        told = spawn.Event()
        worker = spawn.Process(target=work, args=(sys.argv[1], told))
        worker.start()
        told.wait()
        getattr(worker, end)()
        worker.join()
        assert worker.exitcode == {"terminate": -15, "kill": -9}[end], worker.exitcode
        assert os.listdir(sys.argv[1]) == [], os.listdir(sys.argv[1])
    print("ended")
"""


def test_spawned_workers_that_are_ended_leave_nothing(tmp_path: Path) -> None:
    script, directory = tmp_path / "workers.py", tmp_path / "spill"
    script.write_text(WORKERS)
    directory.mkdir()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, str(script), str(directory)], capture_output=True, text=True, env=env, timeout=240
    )
    assert done.stdout == "ended\n", done.stderr
