"""The cost of small things, against PyTorch in one run: one operator, a long chain, a small model, the import.

    python benchmarks/overhead.py [--only mul chain mlp import size] [--threads N]

Needs torch in the environment.  `size` makes a fresh environment and installs rushlight into it.
"""

import os
import statistics
import subprocess
import sys
from types import ModuleType

import pairs

import rushlight  # before torch: it chooses the BLAS core type

import torch

import install_size

# Byte code is kept, as it is where a package is installed: PyTorch's was written by its installation.
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
LIBRARIES: tuple[ModuleType, ModuleType] = (rushlight, torch)


def mul(repeats: int) -> pairs.Pair:
    """`a * b` of 5 elements, both with gradient: the operator and its record in the graph."""

    def case(lib: ModuleType):
        a, b = (lib.rand(5, requires_grad=True) for _ in range(2))
        return lambda: a * b

    times = pairs.alternate(*map(case, LIBRARIES), repeats=repeats, number=20_000)
    return pairs.Pair("a * b, 5 elements, with gradient", *times, limit=0.5)


def chain(repeats: int) -> pairs.Pair:
    """1,000 such products in a chain, forward and backward."""

    def case(lib: ModuleType):
        a, b = (lib.ones(5, requires_grad=True) for _ in range(2))
        seed = lib.ones(5)

        def run() -> None:
            x = a
            for _ in range(1000):
                x = x * b
            x.backward(seed)
            a.grad = b.grad = None

        return run

    times = pairs.alternate(*map(case, LIBRARIES), repeats=repeats, number=8)
    return pairs.Pair("1,000 products in a chain, forward and backward", *times, limit=0.65)


def mlp(repeats: int) -> pairs.Pair:
    """A training step of an MLP 64-128-128-10 with momentum, batch 32."""

    def case(lib: ModuleType):
        nn = lib.nn
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        x, y = lib.rand(32, 64), lib.arange(32) % 10

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    times = pairs.alternate(*map(case, LIBRARIES), repeats=repeats, number=200)
    return pairs.Pair("step of an MLP 64-128-128-10, SGD momentum, batch 32", *times, limit=0.7)


def import_time(repeats: int) -> pairs.Pair:
    """The import statement in a fresh interpreter."""

    def seconds(name: str) -> float:
        program = f"import time; start = time.perf_counter(); import {name}; print(time.perf_counter() - start)"
        return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=ENV).stdout)

    runs = [[seconds(name) for name in ("rushlight", "torch")] for _ in range(max(3, repeats // 3))]
    ours, theirs = (statistics.median(column) for column in zip(*runs))
    return pairs.Pair("import", ours, theirs, limit=0.3)


def size(repeats: int) -> pairs.Pair:
    """Installed bytes with all dependencies."""
    ours, theirs = install_size.fresh(), install_size.installed("torch")
    limit = install_size.LIMIT / theirs
    return pairs.Pair("installed size with dependencies", ours, theirs, limit=limit, unit="B", note="limit 110 MB")


CASES = {"mul": mul, "chain": chain, "mlp": mlp, "import": import_time, "size": size}


def main() -> int:
    options = pairs.arguments(__doc__.splitlines()[0], list(CASES))
    threads = pairs.same_threads(options.threads)
    rows = [CASES[name](options.repeats or 15) for name in options.only or CASES]
    return pairs.report(rows, threads, options.json)


if __name__ == "__main__":
    sys.exit(main())
