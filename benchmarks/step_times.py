"""Measures steps of a group of processes, and what `step_model` says of them.

    rushlight run -n 2 --hosts a,b benchmarks/step_times.py
    python benchmarks/two_hosts.py --bandwidth 1000 --latency 1 -- rushlight run -n 2 --hosts {hosts} benchmarks/step_times.py

Latency and bandwidth are measured by messages that go to and fro, computing by steps of a model that nobody shares.  All ways take
turns, and medians are compared, so that what else the machine does falls on all alike.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import step_model
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def seconds(action: Callable[[], object]) -> float:
    """How long an action takes that all processes begin together: until the last has done it."""
    dist.barrier()
    start = time.perf_counter()
    action()
    found = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return found.item()


def to_and_fro(size: int, repeats: int) -> float:
    """Seconds that a message of so many bytes takes from rank 0 to rank 1: half of there and back."""
    rank, x = dist.get_rank(), torch.zeros(size, dtype=torch.uint8)

    def there_and_back() -> None:
        if rank == 0:
            dist.send(x, 1)
            dist.recv(x, 1)
        elif rank == 1:
            dist.recv(x, 0)
            dist.send(x, 0)

    return statistics.median(seconds(there_and_back) for _ in range(repeats)) / 2


def measured_link(large: int = 8 << 20) -> step_model.Link:
    """Latency and bandwidth, from short and long messages."""
    latency = to_and_fro(8, 9)
    return step_model.Link(latency, large / (to_and_fro(large, 5) - latency))


def model(width: int, depth: int, sharded: bool = False) -> nn.Module:
    """A chain of blocks of one matrix each."""
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh()) for _ in range(depth)))
    if sharded:
        for block in net:
            fully_shard(block)
        fully_shard(net)
    return net


class Parts:
    """Seconds of forward and backward, of a model that nobody shares."""

    def __init__(self, net: nn.Module, x: torch.Tensor) -> None:
        self.net, self.x = net, x
        self.forward: list[float] = []
        self.backward: list[float] = []

    def __call__(self) -> None:
        start = time.perf_counter()
        loss = self.net(self.x).square().mean()
        middle = time.perf_counter()
        loss.backward()
        self.forward.append(middle - start)
        self.backward.append(time.perf_counter() - middle)


def main() -> None:
    """Print what was measured, the model's, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=9)
    given = parser.parse_args()
    dist.init_process_group("gloo")
    width, depth, count = given.width, given.depth, dist.get_world_size()
    x = torch.randn(given.batch, width)
    alone = Parts(model(width, depth), x)
    nets = {
        "ddp": DistributedDataParallel(model(width, depth), bucket_cap_mb=1),
        "fully_shard": model(width, depth, True),
    }
    ways: dict[str, Callable[[], object]] = {"alone": alone}
    ways |= {name: lambda net=net: net(x).square().mean().backward() for name, net in nets.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    link = measured_link()
    for step in range(given.steps + 2):
        for name, action in ways.items():
            took = seconds(action)
            for net in (alone.net, *nets.values()):
                net.zero_grad()
            if step >= 2:  # the first deals buckets
                times[name].append(took)
    computing = statistics.median(times["alone"])  # of the process that is last
    share = statistics.median(alone.forward[2:]) / statistics.median(
        f + b for f, b in zip(alone.forward, alone.backward, strict=True)
    )
    forward, backward = computing * share / depth, computing * (1 - share) / depth
    blocks = [step_model.Block([4.0 * width * width], forward, backward)] * depth
    if dist.get_rank() == 0:
        print(f"{count} processes, {link.bandwidth * 8e-6:.0f} Mbit/s, {link.latency * 1e3:.2f} ms measured; {depth} blocks of "
              f"{4e-6 * width * width:.1f} MB; computing {computing * 1e3:.0f} ms", flush=True)  # fmt: skip
        for name in nets:
            took = statistics.median(times[name])
            said = (
                step_model.ddp(link, count, blocks, 1 << 20)
                if name == "ddp"
                else step_model.fully_shard(link, count, blocks)
            )
            print(
                f"{name}: measured {took * 1e3:.0f} ms, model {said * 1e3:.0f} ms, ratio {took / said:.2f}", flush=True
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
