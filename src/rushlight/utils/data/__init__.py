"""Datasets, samplers, and the loader that turns them into batches, in this process or beside it."""

from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import _DatasetKind
from rushlight.utils.data._utils.worker import get_worker_info
from rushlight.utils.data.dataloader import DataLoader
from rushlight.utils.data.datapipes._decorator import (
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from rushlight.utils.data.datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe
from rushlight.utils.data.dataset import *
from rushlight.utils.data.distributed import DistributedSampler
from rushlight.utils.data.sampler import *

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]
