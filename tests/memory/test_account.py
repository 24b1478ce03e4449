"""What is in use: totals, what is alive by category, the names that PyTorch has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.processes import printed

import rushlight as torch
from rushlight import memory

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="the native kernels cannot be built here")


def test_totals_follow_tensors() -> None:
    before = memory.current()
    memory.reset_peak()
    x = torch.zeros(1000, 1000)
    assert memory.current() - before == x.nbytes == memory.peak() - before
    del x
    assert memory.current() == before and memory.peak() - before == 4_000_000
    stats = memory.stats()
    assert stats.current <= stats.peak and stats.process > 0 and "arrays now" in str(stats)


def test_memory_falls_by_reference_counts_alone() -> None:
    import gc

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
    x = torch.randn(128, 64)
    model(x).sum().backward()
    gc.collect()
    gc.disable()
    try:
        before = memory.current()
        for _ in range(3):
            model(x).sum().backward()
        assert memory.current() == before
    finally:
        gc.enable()


def test_live_by_category_and_module() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(100, 200), torch.nn.Tanh(), torch.nn.Linear(200, 100))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(300, 100)
    model(x).sum().backward()
    optimizer.step()
    loss = model(x).sum()
    live = memory.live()
    size = sum(p.nbytes for p in model.parameters())
    assert live.by_category["parameter"] >= size and live.by_category["gradient"] >= size
    assert live.by_category["optimizer_state"] >= 2 * size
    assert live.by_category["activation"] >= 300 * 200 * 4
    assert live.by_module["0"] >= 2 * model[0].weight.nbytes
    assert live.total == sum(b.size for b in live.blocks) == sum(live.by_category.values())
    assert "by category" in str(live)
    del loss


def test_live_by_line_while_recording() -> None:
    memory.record_history()
    try:
        kept = torch.ones(500, 500).exp()
        live = memory.live()
    finally:
        memory.record_history(None)
    line = max((n for n in live.by_line if "test_account.py" in n), key=lambda n: live.by_line[n])
    assert live.by_line[line] >= kept.nbytes


def test_the_names_of_pytorch() -> None:
    before = memory.memory_allocated()
    memory.reset_peak_memory_stats()
    x = np.ones(100_000)
    stats = memory.memory_stats()
    assert memory.memory_allocated() - before == x.nbytes
    assert stats["allocated_bytes.all.current"] == memory.memory_allocated()
    assert memory.max_memory_allocated() >= before + x.nbytes
    assert "arrays now" in memory.memory_summary(abbreviated=True)
    assert torch.cuda.memory_allocated() == 0  # there is no such device


def test_human() -> None:
    from rushlight.memory.counting.account import human

    assert [human(n) for n in (0, 999, 1000, 1_210_000_000, 999_600)] == ["0 B", "999 B", "1 kB", "1.21 GB", "1 MB"]


def test_what_is_older_than_the_count_is_counted() -> None:
    program = """
import os
os.environ["RUSHLIGHT_COUNT_MEMORY"] = "0"  # as where the kernels are not compiled yet
import rushlight as torch
from rushlight import memory
weight = torch.nn.Linear(1000, 1000).weight  # drawing its numbers loads the kernels
del os.environ["RUSHLIGHT_COUNT_MEMORY"]
assert 4_000_000 <= memory.current() < 4_100_000, memory.current()
assert memory.live().by_category["parameter"] == 4_000_000
del weight
assert 0 <= memory.current() < 100_000, memory.current()
"""
    printed("-c", program)


def test_other_threads_make_tuples_meanwhile() -> None:
    program = """
import sys, threading
from rushlight import memory
done, errors = threading.Event(), []
def work():
    try:
        while not done.is_set():
            tuple(x for x in range(50))
    except SystemError as error:  # what Python raises where somebody else holds the tuple that is being made
        errors.append(error)
thread = threading.Thread(target=work)
sys.setswitchinterval(1e-6)
thread.start()
for _ in range(30):
    memory.live()
done.set()
thread.join()
assert not errors, errors
"""
    printed("-c", program)


def test_a_look_at_what_is_alive_leaves_nothing_alive() -> None:
    import gc
    import sys

    tensor = torch.zeros(1000)
    gc.collect()
    gc.disable()
    try:
        before = sys.getrefcount(tensor)
        memory.live()
        assert sys.getrefcount(tensor) == before
    finally:
        gc.enable()
