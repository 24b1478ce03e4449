"""How long a step of several processes takes, from the latency and bandwidth of what joins them: a model to extrapolate with.

    python benchmarks/step_model.py

A message of m bytes takes  t(m) = L + m / B.  Collectives are sent as MPICH does it (Thakur, Rabenseifner, Gropp: Optimization of
Collective Communication Operations in MPICH, 2005); for n processes, m the bytes of the whole, k = floor(log2 n):

    all_reduce      m up to 2 KiB: k t(m);   else halving and doubling: 2 k L + 2 (1 - 1 / 2^k) m / B
                    where n is no power of two, those above give theirs to another first and get the result at the end: 2 t(m) more
    all_gather      m up to 512 KiB: ceil(log2 n) L + (n - 1) / n m / B;   else a ring: (n - 1) (L + m / n / B)
    reduce_scatter  m up to 512 KiB: ceil(log2 n) L + (n - 1) / n m / B;   else pairwise: (n - 1) (L + m / n / B)
    broadcast       m up to 12 KiB: ceil(log2 n) t(m);   else a scatter, as a short all_gather, and an all_gather

Adding numbers up is left out: it is memory's bandwidth against a network's.  Of a step the model makes a timeline: the bytes of one
message after the other go over the wire, in the order in which the program begins them, while latencies of several pass together.
`DistributedDataParallel` sends a bucket when its last gradient is computed; `fully_shard` gathers a block while the one before it
computes, and a block's gradients have arrived before the next block's backward begins.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

SHORT_REDUCE, SHORT_BROADCAST, LONG = 2048, 12288, 1 << 19  # bytes: where MPICH changes its way


class Cost(NamedTuple):
    """Seconds in which nothing but waiting happens, and in which bytes go over the wire."""

    waiting: float
    moving: float

    @property
    def seconds(self) -> float:
        """Of an operation that is alone on the wire."""
        return self.waiting + self.moving


class Link(NamedTuple):
    """What joins any two processes.  latency: seconds one way, bandwidth: bytes per second in each direction"""

    latency: float
    bandwidth: float

    def cost(self, messages: float, size: float) -> Cost:
        """Of so many messages one after the other, which have so many bytes together."""
        return Cost(self.latency * messages, size / self.bandwidth)


def rounds(count: int) -> int:
    """In how many rounds what one has reaches all, when all that have it pass it on."""
    return math.ceil(math.log2(count))


def all_reduce(link: Link, count: int, size: float) -> Cost:
    """What it takes `count` processes to add up so many bytes."""
    halvings = int(math.log2(count))
    apart = 0 if 2**halvings == count else 2
    if size <= SHORT_REDUCE:
        return link.cost(halvings + apart, (halvings + apart) * size)
    return link.cost(2 * halvings + apart, (2 * (1 - 0.5**halvings) + apart) * size)


def all_gather(link: Link, count: int, size: float) -> Cost:
    """What it takes each to get the parts of all.  size: bytes of the whole"""
    return link.cost(rounds(count) if size <= LONG else count - 1, size * (count - 1) / count)


reduce_scatter = all_gather  # the same messages in the other direction


def broadcast(link: Link, count: int, size: float) -> Cost:
    """What it takes all to get what one has."""
    if size <= SHORT_BROADCAST:
        return link.cost(rounds(count), rounds(count) * size)
    gathered = all_gather(link, count, size)
    return Cost(gathered.waiting + rounds(count) * link.latency, gathered.moving * 2)


class Block(NamedTuple):
    """A part of a model.  parameters: bytes of each; forward, backward: seconds of computing"""

    parameters: Sequence[float]
    forward: float
    backward: float


class Wire:
    """What carries the bytes of one message after the other."""

    def __init__(self) -> None:
        self.free = 0.0

    def carry(self, ready: float, cost: Cost) -> float:
        """When an operation is done that could begin at `ready`."""
        self.free = max(self.free, ready) + cost.moving
        return self.free + cost.waiting


BUCKET, FIRST, SMALL = 25 << 20, 1 << 20, 1 << 16  # bytes: of DDP's buckets, and of what fully_shard sends together


def buckets(blocks: Sequence[Block], cap: float) -> list[tuple[float, float]]:
    """The buckets of DDP: bytes, and seconds of backward until the last gradient of each is there."""
    found: list[tuple[float, float]] = []
    room, now = 0.0, 0.0
    for block in reversed(blocks):
        for size in reversed(block.parameters):
            now += block.backward / len(block.parameters)
            if not found or size > room:
                found.append((0.0, 0.0))
                room = max(min(cap, FIRST) if len(found) == 1 else cap, size)
            found[-1] = (found[-1][0] + size, now)
            room -= size
    return found


def ddp(link: Link, count: int, blocks: Sequence[Block], cap: float = BUCKET) -> float:
    """Seconds of forward and backward with DistributedDataParallel."""
    forward, wire = sum(block.forward for block in blocks), Wire()
    arrived = [wire.carry(forward + ready, all_reduce(link, count, size)) for size, ready in buckets(blocks, cap)]
    return max(forward + sum(block.backward for block in blocks), *arrived)


def together(link: Link, count: int, block: Block, way: Callable[[Link, int, float], Cost]) -> list[Cost]:
    """Each message of a block with fully_shard: small parameters travel in one."""
    small = sum(size for size in block.parameters if size < SMALL)
    return [way(link, count, size) for size in (*(s for s in block.parameters if s >= SMALL), small) if size]


def fully_shard(link: Link, count: int, blocks: Sequence[Block]) -> float:
    """Seconds of forward and backward with each block sharded, and parameters freed after forward."""
    wire, now = Wire(), 0.0

    def gather(block: Block, ready: float) -> float:
        return max(wire.carry(ready, cost) for cost in together(link, count, block, all_gather))

    here = gather(blocks[0], 0.0)
    for number, block in enumerate(blocks):
        now = max(now, here)
        here = gather(blocks[number + 1], now) if number + 1 < len(blocks) else now
        now += block.forward
    here = gather(blocks[-1], now)
    for number, block in reversed(list(enumerate(blocks))):
        now = max(now, here)
        here = gather(blocks[number - 1], now) if number else now
        sent = together(link, count, block, reduce_scatter)
        arrived = now
        for cost in sent:
            now += block.backward / len(sent)
            arrived = max(arrived, wire.carry(now, cost))
        now = max(now, arrived)
    return now


WAYS = {"ddp": ddp, "fully_shard": fully_shard}


def vit_l(seconds: float) -> list[Block]:
    """ViT-L/16 in float32: 24 blocks of 12 million numbers, in a step that computes for so many seconds."""
    width, wide = 1024, 4096
    sizes = [4 * n for n in (3 * width * width, width * width, width * wide, wide * width, 9 * width + wide)]
    return [Block(sizes, seconds / 72, seconds / 36)] * 24


def main() -> None:
    """Print a table for one model, by links and numbers of processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of computing in a step of each process")
    given = parser.parse_args()
    links = {
        "100 Mbit/s, 20 ms": Link(20e-3, 12.5e6),
        "1 Gbit/s, 1 ms": Link(1e-3, 125e6),
        "25 Gbit/s, 20 us": Link(20e-6, 3.125e9),
    }
    blocks, counts = vit_l(given.seconds), (2, 4, 8, 64, 1000)
    print(
        f"ViT-L/16, {sum(sum(b.parameters) for b in blocks) / 1e9:.2f} GB; seconds of a step that computes {given.seconds:g} s\n"
    )
    print("| link | way |", " | ".join(f"{n} processes" for n in counts), "|\n|---|---|" + "---|" * len(counts))
    for name, link in links.items():
        for way, model in WAYS.items():
            print(f"| {name} | {way} |", " | ".join(f"{model(link, n, blocks):.1f}" for n in counts), "|")


if __name__ == "__main__":
    main()
