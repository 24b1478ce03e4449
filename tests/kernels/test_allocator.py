"""The allocator under NumPy's arrays: what it counts, what it records, the limit."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from tests.processes import printed

from rushlight.kernels import allocator

pytestmark = pytest.mark.skipif(not allocator.install(), reason="the native kernels cannot be built here")


def used() -> int:
    return allocator.totals().bytes


@pytest.mark.parametrize("size", [1, 100, 5_000, 40_000, 5_000_000])
def test_every_way_to_make_an_array_is_counted(size: int) -> None:
    before = used()
    made = [np.empty(size, np.uint8), np.zeros(size, np.uint8), np.arange(size), np.ones(size).copy()]
    assert used() - before == sum(a.nbytes for a in made)
    made[0].resize(2 * size, refcheck=False)
    assert used() - before == sum(a.nbytes for a in made)
    del made
    assert used() == before


def test_views_and_foreign_memory_are_not() -> None:
    a = np.ones(100_000)
    before = used()
    views = [a[1:], a.reshape(10, -1), np.frombuffer(bytes(100_000), np.uint8)]
    assert used() == before
    del views


def test_other_threads_are_counted() -> None:
    gc.collect()
    before, made = used(), []
    thread = threading.Thread(target=lambda: made.append(np.ones(1 << 20)))
    thread.start()
    thread.join()
    assert used() - before == 8 << 20


def test_peak() -> None:
    gc.collect()  # or what other tests left dies in between
    allocator.reset_peak()  # the library's alone leaves what `peak_since` told before
    base = allocator.totals().peak
    a = np.ones(1 << 20)
    del a
    assert abs(allocator.totals().peak - base - (8 << 20)) < 1000  # small arrays of before may have died meanwhile
    allocator.reset_peak()
    assert allocator.totals().peak == used()


def test_what_a_call_takes_is_told_apart_and_is_no_part_of_the_peak() -> None:
    allocator.reset_peak()
    kept = np.ones(1 << 18)
    base = allocator.totals().peak
    size, most = allocator.taken(lambda: np.ones(1 << 20) + np.ones(1 << 20), lambda made: made.nbytes)
    assert abs(most - (16 << 20)) < 1000 and size == 8 << 20
    assert abs(allocator.totals().peak - base) < 1000
    with pytest.raises(ZeroDivisionError):
        allocator.taken(lambda: np.ones(1 << 20) if 1 / 0 else None, len)
    assert abs(allocator.totals().peak - base) < 1000
    del kept
    allocator.reset_peak()
    assert allocator.totals().peak == used()


def test_what_is_older_than_the_allocator_is_not_counted_when_it_dies() -> None:
    program = """
import numpy as np
old, small = np.ones(1 << 20), np.ones(8)
import rushlight
from rushlight.kernels import allocator
assert allocator.install()
del old
print(allocator.totals().bytes >= 0)
"""
    assert printed("-c", program).strip() == "True"


@pytest.mark.parametrize("counted", [True, False])
def test_arrays_die_under_the_debugger_of_memory(counted: bool) -> None:
    program = """
import numpy as np
older = [np.ones(n) for n in (3, 300, 30_000)]
import rushlight as torch
from rushlight import memory
print(memory.is_counted())
x = torch.rand(100, 100).requires_grad_()
(x @ x).sum().backward()
older += [np.ones(5), np.arange(10.0), x]
older[-2].resize(4000, refcheck=False)
"""
    how = [] if counted else ["-X", "tracemalloc"]
    found = printed("-X", "dev", *how, "-c", program)  # and at the end of the process
    assert not counted or found == "True\n"


def test_the_limit_asks_for_room_and_refuses_without() -> None:
    asked: list[int] = []
    held: list[Any] = [np.ones(1 << 20)]

    def room(over: int) -> bool:
        asked.append(over)
        had, _ = bool(held), held.clear()
        return had

    keep = allocator.limit(used() + (1 << 20), room)
    try:
        fits = np.ones(1 << 20)  # once there is room
        assert asked == [7 << 20] and not held
        with pytest.raises(MemoryError):
            np.ones(1 << 20)
        with pytest.raises(MemoryError):
            np.zeros((1 << 10, 1 << 10))
    finally:
        allocator.limit(0, None)
    del fits, keep
    np.ones(1 << 20)


def test_room_that_another_thread_takes_is_asked_for_again() -> None:
    held: list[Any] = [np.ones(1 << 20) for _ in range(3)]
    left: list[int] = []

    def room(over: int) -> bool:
        held.pop()
        left.append(len(held))
        if held:  # as another thread might, before it is claimed
            held[0] = np.concatenate([held[0], np.ones(1 << 20)])
        return True

    keep = allocator.limit(used() + (1 << 20), room)
    try:
        fits = np.ones(1 << 20)
    finally:
        allocator.limit(0, None)
    assert left == [2, 1, 0]
    del fits, keep


def test_events_tell_of_births_deaths_and_lines() -> None:
    library = allocator.library()
    before = np.ones(10_000)
    library.record(1000, 8)

    def work() -> Any:
        kept = np.ones(20_000)
        np.zeros(30_000)
        return kept

    kept = work()
    address = before.__array_interface__["data"][0]
    del before
    library.record(0, 0)
    events, dropped, alive, stacks = allocator.read()
    told = events[np.isin(events["size"], [80_000, 160_000, 240_000])]
    assert dropped == 0 and told["action"].tolist() == [0, 0, 1, 1]
    assert told["size"].tolist() == [160_000, 240_000, 240_000, 80_000] and told["address"][3] == address
    assert {stacks[s][1 if stacks[s][0][0].co_name == "ones" else 0][0].co_name for s in told["stack"][:2]} == {"work"}
    assert kept.__array_interface__["data"][0] in alive["address"]
    library.forget()


def test_the_ring_drops_the_oldest() -> None:
    library = allocator.library()
    library.record(10, 0)
    for size in range(1, 21):
        np.empty(size, np.uint8)
    library.record(0, 0)
    events, dropped, _, stacks = allocator.read()
    assert len(events) == 10 and dropped >= 30 and stacks == []
    assert events["size"].tolist() == [n for n in range(16, 21) for _ in "ab"]
    library.forget()


def test_it_can_be_switched_off() -> None:
    program = """
import os
os.environ["RUSHLIGHT_COUNT_MEMORY"] = "0"
import numpy as np, rushlight
from rushlight import memory
rushlight.ones(1000).exp()
try:
    memory.peak()
except RuntimeError as error:
    print(error)
"""
    assert "RUSHLIGHT_COUNT_MEMORY is off" in printed("-c", program)


@pytest.mark.parametrize("first", [1, 3, 10, 37, 1000, 4090, 4096, 5000, 70_000])
@pytest.mark.parametrize("then", [1, 10, 39, 4089, 4097, 9000])
def test_arrays_of_another_size_than_they_were_are_counted_to_the_byte(first: int, then: int) -> None:
    before = used()
    arrays = [np.empty(first), np.zeros(first)]
    for x in arrays:
        x.resize(then, refcheck=False)
    assert used() - before == 16 * then
    for x in arrays:
        x.resize(first, refcheck=False)
    assert used() - before == 16 * first
    del arrays, x
    assert used() == before


def test_arrays_made_of_what_comes_one_by_one_are_counted_to_the_byte() -> None:
    """NumPy asks for more than it needs at first; of objects whose number it knows it did, too, before 2.4."""
    before = used()
    for n in range(1, 200, 7):
        made = np.fromiter(iter(range(n)), np.int64), np.fromiter([None] * n, object, n)
        assert used() - before == 16 * n
    del made
    assert used() == before
