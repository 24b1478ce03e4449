"""Without native kernels memory is counted, recorded, reported and bounded all the same."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(program: str, folder: Path, **environment: str) -> str:
    """What a program prints in a process without native kernels."""
    env = {**os.environ, "RUSHLIGHT_NATIVE": "0", **environment}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.stdout


def test_every_byte_is_counted(tmp_path: Path) -> None:
    run("""
        import threading, numpy as np
        import rushlight as torch
        from rushlight import memory
        assert memory.is_counted()
        objects = [object() for _ in range(10_000)]  # which are no arrays
        before = memory.current()
        x = torch.zeros(1000, 1000)
        assert memory.current() - before == 4_000_000
        y = np.empty(77)
        assert memory.current() - before == 4_000_616 and memory.stats().blocks >= 2
        made = []
        thread = threading.Thread(target=lambda: made.append(np.ones(1000)))
        thread.start(); thread.join()
        assert memory.current() - before == 4_008_616
        memory.reset_peak()
        del x, y
        made.clear()
        assert memory.current() == before and memory.peak() - before == 4_008_616
        layer = torch.nn.Linear(100, 100)
        assert memory.live().by_category["parameter"] == 40_400
        print(memory.stats())
    """, tmp_path)  # fmt: skip


def test_recordings_add_up_and_are_reported(tmp_path: Path) -> None:
    run("""
        import numpy as np
        import rushlight as torch
        from rushlight import memory
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 8))
        optimizer = torch.optim.Adam(model.parameters())
        memory.record_history()
        memory.reset_peak()
        for _ in range(3):
            model(torch.randn(50, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        try:
            held = np.ones(100_000)
            raise ValueError  # blocks that die while an exception is on its way
        except ValueError:
            del held
        assert memory.recording().peak()[0] == memory.peak()
        end = memory.current()
        memory.record_history(None)
        r = memory.recording()
        assert r.peak()[0] == memory.peak() and r.live()[-1] == end and r.live().min() >= 0
        assert {"linear", "tanh"} <= set(r.operators) and {"0", "2"} <= set(r.modules)
        assert any(frame.filename == "<string>" for stack in r.stacks for frame in stack)
        names = {advice.name for advice in memory.advise(r)}
        assert "in_backward" in names or "state" in names
        memory.report(r, "page.html")
        memory.save(r, "run.pickle")
        assert memory.load("run.pickle").peak() == r.peak()
    """, tmp_path)  # fmt: skip
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_budget_is_kept_and_one_that_is_too_small_is_refused(tmp_path: Path) -> None:
    run("""
        import rushlight as torch
        from rushlight import memory

        def train():
            torch.manual_seed(0)
            model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for _ in range(2):
                model(torch.ones(1024, 256)).square().mean().backward()
                optimizer.step()
            return [p.detach().clone() for p in model.parameters()]

        plain = train()
        room = memory.current() + 11_000_000
        with memory.budget(room) as used:
            bounded = train()
            found = used.report()
        assert found.peak <= room < found.without, found
        assert all((a == b).all() for a, b in zip(plain, bounded))
        try:
            with memory.budget(memory.current() + 100_000):
                train()
        except memory.BudgetError as error:
            print(error.least)
        else:
            raise AssertionError
    """, tmp_path)  # fmt: skip


REFUSED = """
    import numpy as np
    import rushlight as torch
    from rushlight import memory

    def refused():
        for size in (1 << 50, 1 << 49):
            try:
                np.empty(size)
            except MemoryError:
                continue
            raise AssertionError
    kept = np.ones(1000)
"""


def test_what_was_refused_is_not_counted(tmp_path: Path) -> None:
    # with NumPy 2.5.5 on Python 3.14 the peak has 16 bytes beside the array: what is refused has petabytes
    program = """
    assert memory.peak() < 10_000
    refused()
    assert memory.current() == 8000 <= memory.peak() < 8100
    more = np.ones(1000)
    refused()
    assert memory.current() == 16_000 <= memory.peak() < 16_100
    memory.record_history()
    refused()
    large = np.ones(100_000)
    refused()
    del large
    assert memory.current() == 16_000 and memory.recording().peak()[0] == memory.peak()
    assert 816_000 <= memory.peak() < 820_000
    memory.record_history(None)
    refused()
    assert memory.current() == 16_000 and 816_000 <= memory.peak() < 820_000
    memory.reset_peak()
    assert memory.peak() == 16_000
    """
    run(textwrap.dedent(REFUSED) + textwrap.dedent(program), tmp_path)


def test_what_was_refused_takes_no_room_of_a_budget_and_does_not_pass_it(tmp_path: Path) -> None:
    program = """
    limit = memory.current() + 1_000_000
    with memory.budget(limit) as used:
        for size in (900_000, 990_000):
            refused()
            block = np.ones(size, np.uint8)  # for which there is no room beside one that was refused
            del block
    assert 990_000 < used.report().peak - memory.current() <= 1_000_000
    assert memory.peak() <= limit
    """
    run(textwrap.dedent(REFUSED) + textwrap.dedent(program), tmp_path)


def test_threads_that_allocate_at_once_do_not_pass_a_limit_together(tmp_path: Path) -> None:
    run("""
        import sys, threading, time, numpy as np
        import rushlight as torch
        from rushlight import memory
        from rushlight.kernels import allocator

        library = allocator.library()
        own = library.default[0]

        def slow(context, size):  # another thread looks for room between the look of this one and its block
            time.sleep(0.01)
            return own(context, size)

        library.default = slow, *library.default[1:]

        def work():
            for _ in range(5):
                try:
                    block = np.empty(600_000, np.uint8)
                    time.sleep(0.01)
                    del block
                except MemoryError:
                    time.sleep(0.01)

        start = memory.current()
        limit = start + 1_000_000
        room = allocator.limit(limit, lambda over: False)
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        allocator.limit(0, None)
        assert memory.current() == start and 600_000 <= memory.peak() - start <= 1_000_000, memory.peak() - start
    """, tmp_path)  # fmt: skip


def test_a_library_that_was_compiled_is_used_where_the_compiler_is_gone(tmp_path: Path) -> None:
    from rushlight.kernels.native import loader

    if not loader.tables():
        pytest.skip("there are no native kernels here")
    if loader.status().get("compiler") == "came compiled":
        pytest.skip("the kernels came with the package: there is no cache without which they would be gone")
    program = """
        from rushlight.kernels.native import loader
        assert loader.tables() and loader.status()["state"] == "loaded", loader.status()
    """
    run(program, tmp_path, RUSHLIGHT_NATIVE="1", CXX="/no/such/compiler")
    empty = run("""
        from rushlight import memory
        from rushlight.kernels.native import loader
        assert memory.is_counted() and not loader.tables() and loader.status()["state"] == "no compiler"
        print("counted")
    """, tmp_path, RUSHLIGHT_NATIVE="1", CXX="/no/such/compiler", RUSHLIGHT_CACHE=str(tmp_path / "cache"))  # fmt: skip
    assert empty == "counted\n"


def test_tracemalloc_of_ones_own_is_in_the_way_and_said(tmp_path: Path) -> None:
    out = run("""
        import tracemalloc
        tracemalloc.start()
        import rushlight
        from rushlight import memory
        assert not memory.is_counted()
        try:
            memory.stats()
        except RuntimeError as error:
            print(error)
    """, tmp_path)  # fmt: skip
    assert "tracemalloc is running" in out
