"""The part of a dataset that one of several processes takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rushlight.basics import groups
from rushlight.generator import Generator
from rushlight.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index, so that the replicas share a dataset; call `set_epoch` for another order.

    Args:
        dataset: the dataset.
        num_replicas: how many processes there are; default: those of the process group.
        rank: which one this is; default: that of the process group.
        shuffle: in random order, the same for all.
        seed: of that order, the same for all.
        drop_last: leave out what cannot be divided evenly; else some indices come twice.

    Raises ValueError where neither numbers nor a process group are there.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = groups.required().size() if num_replicas is None else num_replicas
        rank = groups.required().rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            indices = Generator().manual_seed(self.seed + self.epoch).numpy.permutation(n).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last and indices:
            indices = indices * math.ceil(self.total_size / n)
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch; all replicas must choose the same."""
        self.epoch = epoch
