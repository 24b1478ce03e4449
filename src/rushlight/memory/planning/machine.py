"""How fast this machine is: measured once, in about a second, and kept in a file."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from rushlight import cpu, kernels
from rushlight.basics.arrays import Array
from rushlight.kernels.native.loader import cache_folder
from rushlight.stores.files import Spill

ONCE = 1 << 24  # bytes of the arrays that are measured with
_known: dict[str, Machine] = {}


@dataclass(frozen=True)
class Machine:
    """Seconds that things take here.

    flop: a multiplication or an addition of a large float32 product. byte: a byte read or written by a pass over memory. call:
    an operator, before it computes anything. write, read: a byte of a file for what does not fit.
    """

    processor: str
    threads: int
    flop: float
    byte: float
    call: float
    write: float
    read: float

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.threads} threads: {1e-9 / self.flop:.0f} GFLOP/s, {1e-9 / self.byte:.1f} GB/s in memory, "
            f"{1e-9 / self.write:.1f} GB/s to disk, {1e-9 / self.read:.1f} GB/s from disk, {self.call * 1e6:.0f} us a call"
        )


def machine(dir: object = None, again: bool = False) -> Machine:
    """This machine, from the file where it was measured before.  dir: for what does not fit; again: measure in any case."""
    name = processor()
    key = f"{name}|{kernels.get_num_threads()}|{dir or ''}"
    if again or key not in _known:
        found = None if again else kept(key)
        if found is None:
            found = measured(name, dir)
            keep(key, found)
        _known[key] = found
    return _known[key]


def processor() -> str:
    """The processor's name."""
    return cpu.description().get("model name") or platform.processor() or cpu.machine()


def file() -> Path:
    """Where what was measured is kept."""
    return Path(cache_folder(), "machine.json")


def kept(key: str) -> Machine | None:
    """What was measured before, None where nothing was, or the file cannot be read."""
    try:
        found = json.loads(file().read_text(encoding="utf-8"))[key]
        return Machine(**{field.name: found[field.name] for field in fields(Machine)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(key: str, found: Machine) -> None:
    """Keep what was measured; where that cannot be written, it is measured again by the next process."""
    with contextlib.suppress(OSError):
        path = file()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            all_of = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            all_of = {}
        handle, other = tempfile.mkstemp(dir=path.parent, suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump({**all_of, key: asdict(found)}, out, indent=1)
        os.replace(other, path)


def measured(name: str, dir: object = None) -> Machine:
    """Measure this machine as it is now, other processes included."""
    n = 768
    a, b = (np.full((n, n), 0.5, np.float32) for _ in "ab")
    product, big = np.empty_like(a), np.ones(ONCE // 4, np.float32)
    copy, small = np.empty_like(big), np.ones(16, np.float32)
    flop = quickest(lambda: np.matmul(a, b, out=product)) / (2 * n**3)
    byte = quickest(lambda: np.copyto(copy, big)) / (2 * big.nbytes)
    call = quickest(lambda: [np.add(small, small) for _ in range(100)]) / 100
    write, read = of_disk(big, dir)
    return Machine(name, kernels.get_num_threads(), flop, byte, 4 * call, write, read)


def of_disk(array: Array, dir: object) -> tuple[float, float]:
    """Seconds to write and to read a byte, as stores and budgets do it."""
    spill = Spill(dir, memory=1 << 26)
    writes, reads = [], []
    for _ in range(3):
        start = perf_counter()
        piece = spill.put(array)
        spill.flush()
        writes.append(perf_counter() - start)
        start = perf_counter()
        piece.get(out=np.empty_like(array))
        reads.append(perf_counter() - start)
        piece.free()
    return min(writes) / array.nbytes, min(reads) / array.nbytes


def quickest(call: Callable[[], Any], seconds: float = 0.1) -> float:
    """The least time of a call, of those that fit into about so many seconds, three at least."""
    call()
    times: list[float] = []
    stop = perf_counter() + seconds
    while len(times) < 3 or perf_counter() < stop:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)
