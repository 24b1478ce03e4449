"""Loaders that other libraries write, and that have the iterators of this one pass over them."""

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, get_worker_info
from rushlight.utils.data._utils import signal_handling
from rushlight.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from rushlight.utils.data.datapipes.datapipe import _IterDataPipeSerializationWrapper


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
    assert by_key.fetch([2, 0]) == [3, 1]
    in_turn = _DatasetKind.create_fetcher(_DatasetKind.Iterable, [1, 2, 3], True, list, True)
    assert in_turn.fetch([0, 0]) == [1, 2]
    with pytest.raises(StopIteration):
        in_turn.fetch([0, 0])


class Pass(_BaseDataLoaderIter):
    """As libraries write passes."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self.fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self.fetcher.fetch(self._next_index())


def test_passes_that_libraries_write_give_what_ours_give() -> None:
    loader = DataLoader(range(10), batch_size=3, shuffle=True)
    torch.manual_seed(0)
    expected = [batch.tolist() for batch in loader]
    torch.manual_seed(0)
    own = Pass(loader)
    assert [batch.tolist() for batch in own] == expected and len(own) == 4 and own._num_yielded == 4
    own._reset(loader)
    assert own._num_yielded == 0 and next(own).shape == (3,)
    with pytest.raises(NotImplementedError):
        next(_BaseDataLoaderIter(loader))


def test_a_worker_that_dies_is_told_by_a_signal() -> None:
    before = signal.getsignal(signal.SIGCHLD)
    try:
        for code, said in (
            ("import os; os.kill(os.getpid(), 9)", "is killed by signal: Killed"),
            ("raise SystemExit(3)", "exit code 3"),
            ("", ""),
        ):
            signal_handling._set_SIGCHLD_handler()
            with subprocess.Popen([sys.executable, "-c", f"input()\n{code}"], stdin=subprocess.PIPE) as worker:
                signal_handling._set_worker_pids(7, (worker.pid,))
                assert worker.stdin is not None
                context = (
                    pytest.raises(RuntimeError, match=f"worker .pid {worker.pid}. .*{said}")
                    if said
                    else contextlib.nullcontext()
                )
                with context:
                    worker.stdin.write(b"\n")
                    worker.stdin.close()
                    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
                    time.sleep(0.2)
            signal_handling._remove_worker_pids(7)
    finally:
        signal.signal(signal.SIGCHLD, before)
        signal_handling._handles = False


def test_workers_of_other_loaders_say_who_they_are() -> None:
    from rushlight.utils.data._utils import worker
    from rushlight.utils.data.datapipes.iter import IterableWrapper, ShardingFilter

    pipe = ShardingFilter(IterableWrapper(range(12)))
    worker._worker_info = worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=pipe)
    told: list[int] = []
    try:
        assert torch.utils.data.get_worker_info().num_workers == 2
        worker._sharding_worker_init_fn(told.append, 3, 2, 1)
    finally:
        worker._worker_info = None
    assert told == [1] and list(pipe) == [5, 11] and worker.ManagerWatchdog().is_alive()
    assert torch.utils.data.get_worker_info() is None
    wrapped = _IterDataPipeSerializationWrapper(IterableWrapper(range(3)))
    assert list(pickle.loads(pickle.dumps(wrapped))) == [0, 1, 2] and len(wrapped) == 3
