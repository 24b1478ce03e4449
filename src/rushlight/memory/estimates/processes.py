"""What each of several processes will need, from what one needs with its part of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.memory.counting.account import human

__all__ = ["Share", "shares"]

FLIGHT = 1 << 25  # bytes of gradients that `fully_shard` lets be on their way, beside one parameter's
BUCKET = 25 << 20  # bytes of a bucket of DistributedDataParallel


@dataclass(frozen=True)
class Share:
    """What one process needs, in bytes, at most at once of each kind.

    messages: what is whole for a while: buckets of gradients, parameters of blocks that are gathered and their gradients; rest:
    activations, inputs and temporaries, of this process's batch; peak: all of it together, which is seldom reached.
    """

    parameters: int
    gradients: int
    optimizer_state: int
    messages: int
    rest: int

    @property
    def peak(self) -> int:
        """The sum."""
        return self.parameters + self.gradients + self.optimizer_state + self.messages + self.rest

    def __str__(self) -> str:
        parts = (("parameters", self.parameters), ("gradients", self.gradients), ("optimizer state", self.optimizer_state),
                 ("messages", self.messages), ("rest", self.rest))  # fmt: skip
        return f"{human(self.peak)}: " + ", ".join(f"{name} {human(n)}" for name, n in parts)


def shares(
    found: Any, blocks: Sequence[Sequence[int]], outer: Sequence[int], count: int, fused: bool, train: bool
) -> dict[str, Share]:
    """What each of `count` processes needs with DistributedDataParallel, with ZeroRedundancyOptimizer, and with `fully_shard`.

    found: the estimate of one process; blocks: bytes of the parameters of each block, outer: of those that are in none; fused:
    whether the optimizer steps in backward; train: whether there is a backward.
    """
    whole, state, sizes = found.parameters, found.optimizer_state, [*blocks, outer]
    owned = sum(found.by_category.get(name, 0) for name in ("parameter", "gradient", "optimizer_state"))
    rest = max(found.peak - owned, found.activations + found.inputs)
    grads = sum(map(sum, sizes)) if train else 0
    kept = 0 if fused else grads
    largest, one = max(sum(some) for some in sizes), max((n for some in sizes for n in some), default=0)
    # Gradients are in buckets, which stay where nothing steps in backward; else one fills and one is on its way.
    waiting = min(grads, 2 * BUCKET) if fused else kept
    buckets = min(grads, one)  # that of a parameter, before it is copied to its bucket
    # Whole at once: what lies around the blocks, the block that computes and the next; gradients that are computed
    # and on their way.
    gathered = (sum(outer) if blocks else 0) + 2 * largest
    flight = min(largest, max(FLIGHT, one)) + one if train else 0
    parts = -(-(kept or 2 * one) // count) if train else 0
    return {
        "ddp": Share(whole, waiting, state, buckets, rest),
        "zero": Share(whole, waiting, -(-state // count), buckets, rest),
        "fully_shard": Share(-(-whole // count), parts, -(-state // count), min(gathered, whole) + flight, rest),
    }
