"""Stores: where tensors that are saved for backward are kept, instead of as they are in memory.

Each is a context manager and a wrapper of modules, and they nest: see `Store`.

>>> import rushlight as torch
>>> from rushlight import stores
>>> model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
>>> x = torch.randn(64, 256)
>>> with stores.disk(min_bytes=4096), stores.compress("bf16"):
...     loss = model(x).sum()
>>> loss.backward()
"""

from __future__ import annotations

from rushlight.stores.compression import CompressStore as compress
from rushlight.stores.errors import StoreError, StoreWarning
from rushlight.stores.host import CpuStore as cpu
from rushlight.stores.offload import DiskStore as disk
from rushlight.stores.recomputation import RecomputeStore as recompute
from rushlight.stores.store import Store

__all__ = ["Store", "StoreError", "StoreWarning", "compress", "cpu", "disk", "recompute"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
