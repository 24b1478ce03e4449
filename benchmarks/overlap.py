"""What messages cost a step of DistributedDataParallel, and when they are on their way.

    rushlight run -n 2 benchmarks/overlap.py

Times steps of a GPT with and without messages, in turns and with the same threads, and compares medians of the slowest process, and
of the processor's time that a process takes, which other programs on the machine do not lengthen; then prints one step as it went: forward, backward, and each bucket from when it is sent until it is seen to have arrived.
"""

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from rushlight.models.language import GPT
from step_times import seconds
from torch.autograd import profiler
from torch.nn.parallel import DistributedDataParallel

WIDE = 72  # columns


def bar(start: float, end: float, whole: float) -> str:
    """A stretch of time as a part of a line."""
    first = min(int(start / whole * WIDE), WIDE - 1)
    return " " * first + "#" * max(1, round((end - start) / whole * WIDE))


def rows(events: Sequence[profiler.FunctionEvent]) -> list[tuple[str, float, float]]:
    """What is drawn: name, beginning and end in microseconds."""
    root = next(e.time_range.start for e in events if e.name.endswith("GraphRoot"))
    computing = [e.time_range for e in events if not e.is_async]
    forward = [t for t in computing if t.start < root]
    found = [("forward", forward[0].start, max(t.end for t in forward)),
             ("backward", root, max(t.end for t in computing))]  # fmt: skip
    messages = [e for e in events if e.is_async]
    return found + [(f"{e.name[4:]} {k}", e.time_range.start, e.time_range.end) for k, e in enumerate(messages)]


def drawn(events: Sequence[profiler.FunctionEvent]) -> list[str]:
    """A step as lines of text."""
    found = rows(events)
    begin, end = found[0][1], max(stop for _, _, stop in found)
    return [f"{name:14s}|{bar(start - begin, stop - begin, end - begin):{WIDE}s}| "
            f"{(start - begin) / 1e3:5.0f} to {(stop - begin) / 1e3:5.0f} ms" for name, start, stop in found]  # fmt: skip


def main() -> None:
    """Print the times, their ratio, and a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--bucket", type=float, default=6, help="MiB of gradients that are sent together")
    given = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    alone = GPT(256, length=128, layers=given.layers, width=given.width, heads=6)
    shared = DistributedDataParallel(copy.deepcopy(alone), bucket_cap_mb=given.bucket)
    tokens = torch.randint(256, (given.batch, 128))

    def step(net: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
        net(tokens, tokens)[1].backward()

    ways = {"without messages": alone, "with": shared}
    times: dict[str, list[float]] = {name: [] for name in ways}
    busy: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(given.steps + 2):
        for name, net in ways.items():
            before = time.process_time()
            took = seconds(lambda net=net: step(net))
            used = time.process_time() - before
            net.zero_grad()
            if turn >= 2:  # the first deals buckets
                times[name].append(took)
                busy[name].append(used)
    dist.barrier()
    with profiler.profile() as prof:
        step(shared)
    if dist.get_rank() == 0:
        print(
            f"{dist.get_world_size()} processes, {sum(p.nbytes for p in alone.parameters()) / 1e6:.0f} MB of gradients"
        )
        for what, lists in ("a step takes", times), ("processor's time", busy):
            without, with_them = (statistics.median(found) * 1e3 for found in lists.values())
            print(
                f"{what}: {without:.0f} ms without messages, {with_them:.0f} ms with, ratio {with_them / without:.3f}"
            )
        print(*drawn(prof.function_events), sep="\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
