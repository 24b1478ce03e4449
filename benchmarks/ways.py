"""What each faster way to run an operator gains over the general one: processor time, the least of interleaved repeats.

    python benchmarks/ways.py

usual: nobody is in an unusual mode.  beside: another thread is.  no_grad: this thread records nothing.  general: a mode of this
thread matters to operators (a default device), so that each takes the general path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import rushlight
from rushlight import nn
from rushlight.basics.state import Setting, special

REPEATS = 15


@contextmanager
def beside() -> Iterator[None]:
    special.add(1)
    try:
        yield
    finally:
        special.add(-1)


STATES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "usual": nullcontext,
    "beside": beside,
    "no_grad": rushlight.no_grad,
    "general": lambda: Setting("default_device", rushlight.device("cpu")),
}


def step() -> Callable[[], object]:
    """A training step of an MLP 64-128-128-10 with momentum, 32 rows."""
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = rushlight.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    x, labels = rushlight.rand(32, 64), rushlight.randint(0, 10, (32,))

    def run() -> None:
        with rushlight.enable_grad():
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()

    return run


def cases() -> Iterator[tuple[str, Callable[[], object], int]]:
    """(what it says, what is timed, calls of a repeat)"""
    a, b = (rushlight.rand(5, requires_grad=True) for _ in range(2))
    p, q, m, i = rushlight.rand(5), rushlight.rand(5), rushlight.rand(4, 5), rushlight.arange(5)
    yield "`a * b`, recorded", lambda: a * b, 10_000
    yield "`p * q`, nothing to record", lambda: p * q, 10_000
    yield "`a.exp()`, recorded", lambda: a.exp(), 10_000
    yield "`i + 1`, integers", lambda: i + 1, 10_000
    yield "`m.sum(1)`", lambda: m.sum(1), 5_000
    yield "`m.t()`", lambda: m.t(), 10_000
    yield "`m[1:]`", lambda: m[1:], 10_000
    yield "`p.add_(q)`", lambda: p.add_(q), 10_000
    yield "a step of an MLP", step(), 50


def microseconds(run: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - start) / calls * 1e6


def main() -> None:
    rushlight.set_num_threads(1)
    print("| us |", " | ".join(STATES), "| usual / general |\n|", "--- |" * (len(STATES) + 2))
    for name, run, calls in cases():
        least = dict.fromkeys(STATES, float("inf"))
        for _ in range(REPEATS):
            for state, around in STATES.items():
                with around():
                    least[state] = min(least[state], microseconds(run, calls))
        times = " | ".join(f"{t:.2f}" for t in least.values())
        print(f"| {name} | {times} | {least['usual'] / least['general']:.2f} |")


if __name__ == "__main__":
    main()
