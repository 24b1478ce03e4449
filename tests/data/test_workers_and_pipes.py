"""Datapipes in loaders with workers: each element once, in an order that all workers agree on."""

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader
from rushlight.utils.data.datapipes.iter import IterableWrapper


@pytest.mark.parametrize("worker_type", ["thread", "process"])
def test_workers_share_the_elements(worker_type):
    pipe = IterableWrapper(range(8)).shuffle().sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=2, worker_type=worker_type, shuffle=True)
    torch.manual_seed(1)
    first, second = list(loader), list(loader)
    torch.manual_seed(1)
    assert sorted(first) == sorted(second) == list(range(8)) and first != second
    assert list(loader) == first


def test_persistent_workers_shuffle_anew():
    pipe = IterableWrapper(range(8)).shuffle().sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=2, persistent_workers=True, worker_type="thread")
    first, second = list(loader), list(loader)
    assert sorted(first) == sorted(second) == list(range(8)) and first != second
