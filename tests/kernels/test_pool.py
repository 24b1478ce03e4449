"""The threads of the kernels: many, several callers at once, and none in a process that is forked."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.processes import printed

import rushlight
from rushlight.kernels.native import loader

F = rushlight.nn.functional
native = pytest.mark.skipif(not loader.tables(), reason="no native kernels here")


@pytest.fixture(params=[1, 2, 5, 16, 300])
def many(request: pytest.FixtureRequest) -> Any:
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(request.param)
    yield request.param
    rushlight.set_num_threads(before)


@native
def test_callers_at_once(many: int) -> None:
    """One of them has the threads, the others work alone: everybody gets the same numbers."""
    rushlight.manual_seed(0)
    inputs = [rushlight.randn(n) for n in (70_000, 300_001, 1_000_003)]
    wanted, failed = [F.gelu(x) for x in inputs], []

    def call(i: int) -> None:
        for _ in range(20):
            if not rushlight.equal(F.gelu(inputs[i]), wanted[i]):
                failed.append(i)

    callers = [threading.Thread(target=call, args=(i % 3,)) for i in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failed


FORKS = """
import os
import rushlight as torch

def work():
    return torch.nn.functional.gelu(torch.ones(300_000)).sum().item()

def threads():
    with open("/proc/self/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[17])

torch.set_num_threads(4)
wanted = work()
assert threads() > 3, threads()
for _ in range(3):
    child = os.fork()
    after = threads()
    if not child:
        os._exit(0 if after == 1 and work() == wanted and threads() > 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert after == 1, after
    assert work() == wanted and threads() > 3
"""


@native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_forked_process_has_no_threads_and_makes_its_own() -> None:
    """Python 3.12 warns of a fork after which the parent has threads: those of the kernels end before, and come back."""
    env = {**os.environ, "PYTHONPATH": str(Path(rushlight.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
    printed("-W", "error", "-c", FORKS, env=env)
