"""What profiling adds to an operator and to a node of a backward, in nanoseconds; small tensors, the best of many runs.

python benchmarks/profiler.py
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import rushlight as torch

CHAIN = 200


def best(run: Callable[[], Any], calls: int = 2000, rounds: int = 15) -> float:
    """Nanoseconds of one call."""
    found = []
    for _ in range(rounds):
        start = perf_counter_ns()
        for _ in range(calls):
            run()
        found.append((perf_counter_ns() - start) / calls)
    return min(found)


def operators() -> dict[str, Callable[[], Any]]:
    """Operators of every kind of call."""
    leaf, a, matrix = torch.ones(4, requires_grad=True), torch.ones(4), torch.ones(2, 2, requires_grad=True)
    return {
        "mul": lambda: leaf * a, "mul, no gradient": lambda: a * a, "exp": lambda: leaf.exp(),
        "sum": lambda: leaf.sum(), "mm": lambda: matrix @ matrix, "softmax": lambda: leaf.softmax(0),
        "linear": lambda: torch.nn.functional.linear(matrix, matrix), "add_": lambda: a.add_(0),
        "view": lambda: leaf.view(2, 2), "index": lambda: leaf[1:], "cat": lambda: torch.cat([leaf, a]),
    }  # fmt: skip


def backward(rounds: int = 20) -> float:
    """Nanoseconds a node of a chain."""
    x, found = torch.ones(4, requires_grad=True), []
    for _ in range(rounds):
        y = x
        for _ in range(CHAIN):
            y = y.exp()
        start = perf_counter_ns()
        y.backward(torch.zeros(4))
        found.append((perf_counter_ns() - start) / CHAIN)
    return min(found)


def main() -> None:
    cases = {name: lambda run=run: best(run) for name, run in operators().items()} | {"a node": backward}
    print(f"{'':18}{'off':>8}{'on':>8}{'added':>8}  ns")
    for name, measure in cases.items():
        off = measure()
        with torch.autograd.profiler.profile():
            on = measure()
        print(f"{name:18}{off:8.0f}{on:8.0f}{on - off:8.0f}")


if __name__ == "__main__":
    main()
