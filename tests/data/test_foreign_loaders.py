"""Loaders that other libraries write, and that have the iterators of this one pass over them."""

import itertools
import multiprocessing
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import get_worker_info
from rushlight.utils.data.dataloader import (
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)


class Loader:
    """What makes its own batches, and is the dataset of the iterator, too."""

    _IterableDataset_len_called, _auto_collation, drop_last, in_order, timeout = None, False, False, True, 0
    _index_sampler, generator, prefetch_factor, persistent_workers = itertools.count(), None, 2, False
    dataset_kind = _dataset_kind = _DatasetKind.Iterable
    pin_memory, worker_init_fn = False, None

    def __init__(self, num_workers: int) -> None:
        self.num_workers, self.dataset = num_workers, self

    def collate_fn(self, x: Any) -> Any:
        return x

    @property
    def multiprocessing_context(self) -> Any:
        return multiprocessing if self.num_workers else None

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (torch.full((2,), i) for i in range(first, 5, step))


@pytest.mark.parametrize("workers", [0, 2])
def test_they_give_all_batches(workers: int) -> None:
    kind = _MultiProcessingDataLoaderIter if workers else _SingleProcessDataLoaderIter
    assert sorted(int(batch[0]) for batch in kind(Loader(workers))) == [0, 1, 2, 3, 4]


def test_a_pass_draws_its_seed_from_the_loaders_generator() -> None:
    loader = Loader(0)
    loader.generator = torch.Generator().manual_seed(3)
    before = loader.generator.get_state()
    _SingleProcessDataLoaderIter(loader)
    assert not torch.equal(before, loader.generator.get_state())
    with pytest.raises(TypeError, match="no length"):
        len(_SingleProcessDataLoaderIter(loader))


def test_what_fetches_by_the_kind_of_a_dataset() -> None:
    by_key = _DatasetKind.create_fetcher(_DatasetKind.Map, [1, 2, 3], True, list, False)
    assert by_key([2, 0]) == [3, 1]
    in_turn = _DatasetKind.create_fetcher(_DatasetKind.Iterable, [1, 2, 3], True, list, True)
    assert in_turn([0, 0]) == [1, 2]
    with pytest.raises(StopIteration):
        in_turn([0, 0])
