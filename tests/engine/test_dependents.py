"""Who computes values from memory is told of its change, whatever the collector and other threads do meanwhile."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np

from rushlight import storage


class Dependent:
    """Counts how often it is told."""

    def __init__(self, root: np.ndarray) -> None:
        self.told, self.cycle = 0, self
        self.keys = [storage.depend(root, self)]

    def settle(self, root: np.ndarray) -> None:
        self.told += 1

    def __del__(self) -> None:
        storage.independent(self.keys, self)


def told(root: np.ndarray, times: int) -> int:
    """How many of so many dependents were told of a change right after they came into being."""
    count = 0
    for _ in range(times):
        one = Dependent(root)
        storage.settle(root)
        count += one.told == 1
        one.cycle = one
        del one
    return count


def test_the_collector_may_run_anywhere() -> None:
    root = np.zeros(10)
    former = gc.get_threshold()
    try:
        for threshold in range(1, 8):
            gc.set_threshold(threshold)
            assert told(root, 100) == 100
    finally:
        gc.set_threshold(*former)


def test_other_threads_may_depend_on_the_same() -> None:
    root, end = np.zeros(10), threading.Event()

    def churn() -> None:
        while not end.is_set():
            one = Dependent(root)
            del one.cycle, one

    thread, former = threading.Thread(target=churn), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        alone = [Dependent(root) for _ in range(2000)]
        for one in alone:
            again = Dependent(root)
            del again.cycle, again
            one.keys.append(storage.depend(root, one))
        storage.settle(root)
        assert all(one.told for one in alone)
    finally:
        end.set()
        thread.join()
        sys.setswitchinterval(former)


def test_what_the_collector_ends_leaves_nothing() -> None:
    root = np.zeros(10)
    key = id(root)
    for _ in range(10):
        Dependent(root)
    gc.collect()
    assert key not in storage.dependents
