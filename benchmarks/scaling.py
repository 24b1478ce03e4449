"""What 1, 2 and 4 processes of this machine train, and the bytes that each receives against the formula.

    python benchmarks/scaling.py

A GPT with the same batch in each process and one thread, so that more processes do more work.  Ways take turns within a group,
and medians of the slowest process are compared.  Prints a table, with the processor's time that one process takes for a step, which
other programs on the machine do not lengthen.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

LENGTH = 128  # tokens of a text


class Way(NamedTuple):
    """A way to train.  wrap: of a model; blocks, rest: how often parameters of blocks and others travel, (n - 1) / n of each time"""

    wrap: Callable[[Any], Any]
    zero: bool
    back: bool
    blocks: int
    rest: int


def ways() -> dict[str, Way]:
    """All by name."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def sharded(net: Any) -> Any:
        for block in net.blocks:
            fully_shard(block)
        return fully_shard(net)

    return {
        "DistributedDataParallel": Way(DistributedDataParallel, False, False, 2, 2),
        "and ZeroRedundancyOptimizer": Way(DistributedDataParallel, True, False, 3, 3),
        "fully_shard": Way(sharded, False, False, 3, 2),
        "fully_shard, in backward": Way(sharded, False, True, 3, 2),
    }


def trainer(way: Way | None, batch: int) -> Callable[[], None]:
    """What does a step."""
    import torch
    from rushlight.models.language import GPT
    from torch.distributed.optim import ZeroRedundancyOptimizer

    torch.manual_seed(0)
    net = GPT(256, LENGTH, layers=4, width=256, heads=4)
    model = net if way is None else way.wrap(net)
    if way is not None and way.zero:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    else:
        optimizer = torch.optim.Adam(model.parameters())
    if way is not None and way.back:
        torch.optim.in_backward(optimizer)
    tokens = torch.randint(256, (batch, LENGTH))

    def step() -> None:
        optimizer.zero_grad()
        model(tokens, tokens)[1].backward()
        optimizer.step()

    return step


def measured(steps: int, batch: int) -> None:
    """Within a group: print seconds of a step and bytes received in it, by way, and the formula's bytes."""
    import torch.distributed as dist
    from rushlight.distributed.channel import received
    from rushlight.models.language import GPT
    from step_times import seconds

    dist.init_process_group("gloo")
    count, net = dist.get_world_size(), GPT(256, LENGTH, layers=4, width=256, heads=4)
    blocks = sum(p.nbytes for p in net.blocks.parameters())
    rest = sum(p.nbytes for p in net.parameters()) - blocks
    chosen = ways() if count > 1 else {"one process": None}
    trainers = {name: trainer(way, batch) for name, way in chosen.items()}
    times: dict[str, list[float]] = {name: [] for name in chosen}
    busy: dict[str, list[float]] = {name: [] for name in chosen}
    moved: dict[str, int] = {}
    for turn in range(steps + 2):
        for name, step in trainers.items():
            noted: list[tuple[int, float]] = []

            def noting(step: Callable[[], None] = step, noted: list[tuple[int, float]] = noted) -> None:
                noted.append((received.total(), time.process_time()))
                step()
                noted.append((received.total(), time.process_time()))

            took = seconds(noting)
            moved[name], used = (after - before for before, after in zip(*noted, strict=True))
            if turn >= 2:  # the first makes state and deals buckets
                times[name].append(took)
                busy[name].append(used)
    if dist.get_rank() == 0:
        for name, way in chosen.items():
            formula = 0 if way is None else (way.blocks * blocks + way.rest * rest) * (count - 1) / count
            medians = [statistics.median(found[name]) for found in (times, busy)]
            print(json.dumps([count, name, *medians, moved[name], formula]), flush=True)
    dist.destroy_process_group()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--batch", type=int, default=4, help="texts in a process")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        measured(given.steps, given.batch)
        return
    print(
        "| processes | | tokens a second | of one | processor's ms | MB received in a step | formula |\n|---|---|"
        + "---:|" * 5
    )
    one = 0.0
    for count in (1, 2, 4):
        words = [sys.executable, "-m", "rushlight", "run", "-n", str(count), __file__, "--inside"]
        words += ["--steps", str(given.steps), "--batch", str(given.batch)]
        done = subprocess.run(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        for n, name, took, busy, moved, formula in map(json.loads, done.stdout.splitlines()):
            speed = n * given.batch * LENGTH / took
            one = one or speed
            print(f"| {n} | {name} | {speed:,.0f} | {speed / one:.2f} | {busy * 1e3:.0f} | {moved / 1e6:.2f} | "
                  f"{formula / 1e6:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
