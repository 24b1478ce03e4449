"""One workload in a process of its own, for `bench.py`: seconds of a step, peak of memory, losses, as JSON.

python benchmarks/one_workload.py LIBRARY NAME THREADS SECONDS [--work]
"""

import importlib
import json
import os
import statistics
import sys
import time
from typing import Any


def resident(name: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def restart_peak() -> None:
    """From now on VmHWM is the peak since here."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def timed(step: Any, seconds: float) -> list[float]:
    """Seconds of each step, for some seconds, five steps at least."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < 5 or (time.perf_counter() < end and len(taken) < 2000):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return taken


def work_of(torch: Any, step: Any) -> dict[str, float]:
    """What a step has to do at least: floating-point operations of products, bytes made, operators called."""
    from rushlight.kernels import allocator
    from rushlight.compat.rooms.flop_counter import FlopCounterMode

    before = allocator.totals().bytes_ever
    step()
    made = allocator.totals().bytes_ever - before
    with FlopCounterMode(display=False) as counter:
        step()
    with torch.profiler.profile() as profile:
        step()
    calls = sum(row.count for row in profile.key_averages())
    return {"flops": counter.get_total_flops(), "bytes": made, "calls": calls}


def main(library: str, name: str, threads: str, seconds: str, *rest: str) -> None:
    torch = importlib.import_module(library)
    from workloads import WORKLOADS

    torch.set_num_threads(WORKLOADS[name].threads or int(threads))
    before = resident("VmRSS")
    restart_peak()
    torch.manual_seed(0)
    step = WORKLOADS[name].make(torch)
    losses = [float(step().detach()) for _ in range(3)]  # and warm up
    found: dict[str, Any] = {"losses": losses}
    if "--work" in rest:
        found |= work_of(torch, step)
    else:
        taken = timed(step, float(seconds))
        found |= {"seconds": statistics.median(taken), "peak": resident("VmHWM") - before, "steps": len(taken)}
    print(json.dumps(found), flush=True)
    os._exit(0)  # workers and threads need not end in order


if __name__ == "__main__":
    main(*sys.argv[1:])
