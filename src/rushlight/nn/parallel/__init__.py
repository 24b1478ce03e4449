"""Modules that run a module on several devices."""

from rushlight.nn.parallel.data_parallel import DataParallel

__all__ = ["DataParallel"]
