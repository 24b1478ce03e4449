"""Storages by their numbers, and how many use one."""

from __future__ import annotations

import gc

from rushlight.storage import Storage as StorageBase
from rushlight.storage import numbered, storage_of
from rushlight.tensor import Tensor

__all__ = ["StorageBase", "_storage_Use_Count", "_storage_address", "_storage_id"]


def _storage_id(tensor: Tensor) -> int:
    """The number of a tensor's storage, which its views have too."""
    return storage_of(tensor)._cdata


_storage_address = _storage_id


def _storage_Use_Count(storage_ptr: int) -> int:
    """How many tensors hold the storage of this number.  Raises KeyError where there is none."""
    storage = numbered[storage_ptr]
    return sum(isinstance(x, Tensor) and x._storage is storage for x in gc.get_referrers(storage))
