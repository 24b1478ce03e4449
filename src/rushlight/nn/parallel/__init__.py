"""Modules that run a module on several devices."""

from rushlight.nn.parallel.data_parallel import DataParallel
from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "gather", "scatter"]
