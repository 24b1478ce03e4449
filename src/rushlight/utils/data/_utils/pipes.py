"""Datapipes in loaders: seeds that all workers share, and elements that they share among them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from rushlight.generator import Generator
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.graph_settings import apply_random_seed, apply_sharding, apply_shuffle_settings

if TYPE_CHECKING:
    from rushlight.utils.data._utils.worker import Job


def is_pipe(dataset: object) -> bool:
    """Whether a dataset is a datapipe whose elements come one after another."""
    return isinstance(dataset, IterDataPipe)


def shuffled(dataset: Any, shuffle: bool | None) -> Any:
    """A datapipe that shuffles or not, as a loader is told."""
    return apply_shuffle_settings(dataset, shuffle=shuffle)


def seeded(dataset: Any, seed: int) -> Any:
    """A datapipe whose random numbers follow from a seed."""
    return apply_random_seed(dataset, Generator().manual_seed(seed))


def of_worker(job: Job, id: int, own: bool, passes: int) -> Any:
    """The datapipe of one worker, for its pass of this number.  own: whether the worker's datapipe is no other's."""
    dataset = job.dataset if own or job.count < 2 else copy.deepcopy(job.dataset)
    apply_sharding(dataset, job.count, id, SHARDING_PRIORITIES.MULTIPROCESSING)
    return seeded(dataset, job.shared + passes)
