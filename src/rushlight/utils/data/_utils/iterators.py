"""One pass over a loader: in this thread, or with workers ahead of it."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.events import MARK, observed
from rushlight.basics.state import special
from rushlight.utils.data._utils import pipes
from rushlight.utils.data._utils.errors import Failure
from rushlight.utils.data._utils.fetch import _DatasetKind
from rushlight.utils.data._utils.pool import ProcessPool, ThreadPool
from rushlight.utils.data._utils.worker import END, Job
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.sampler import checked_generator


class LengthCheck:
    """Warns when an iterable dataset gives more than its length promised.  length: None if nobody asked."""

    def __init__(self, loader: Any):
        self.dataset, self.loader_length = loader.dataset, loader._IterableDataset_len_called
        self.workers, self.given = loader.num_workers, 0
        self.active = isinstance(loader.dataset, IterableDataset) and self.loader_length is not None

    def count(self) -> None:
        """One more batch."""
        self.given += 1
        if self.active and self.given > self.loader_length:
            message = (
                f"Length of IterableDataset {self.dataset} was reported to be {self.loader_length} (when accessing "
                f"len(dataloader)), but {self.given} samples have been fetched. "
            )
            if self.workers > 0:
                message += (
                    "For multi-process data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker."
                )
            warn(message)


def seeds(loader: Any) -> tuple[int, int]:
    """Two numbers of a pass from the loader's generator: of workers, and of datapipes (0 for other datasets)."""
    numbers = checked_generator(loader.generator).numpy
    shared = int(numbers.integers(1 << 63)) if pipes.is_pipe(loader.dataset) else 0
    return int(numbers.integers(1 << 63)), shared


def length_of(loader: Any) -> int | None:
    """How many batches a pass has, None where nobody knows, as of loaders that other libraries write."""
    return len(loader) if getattr(loader, "_sized", False) else None


class LoaderIterator(Iterator[Any]):
    """A pass over a loader, of either kind: what is asked of one is what `DataLoader` and those that libraries write have in common.

    Passes that libraries write are of this class, too: they have what is set here, by PyTorch's names, and give `_next_data()`.
    """

    shown = ""  # its class, as profiles have it

    def __init__(self, loader: Any):
        self._dataset, self._dataset_kind, self._collate_fn = loader.dataset, loader._dataset_kind, loader.collate_fn
        self._auto_collation, self._drop_last = loader._auto_collation, loader.drop_last
        self._index_sampler, self._num_workers, self._timeout = (
            loader._index_sampler,
            loader.num_workers,
            loader.timeout,
        )
        self._pin_memory, self._pin_memory_device = False, loader.pin_memory_device  # there is no memory to pin
        self._persistent_workers, self._world_size, self._rank = loader.persistent_workers, 1, 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._base_seed, self._shared_seed = seeds(loader)
        self._restart(loader)

    def _restart(self, loader: Any) -> None:
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        self._check = LengthCheck(loader)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begin another pass."""
        self._base_seed, self._shared_seed = seeds(loader)
        self._restart(loader)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if not special.observing:
            return self.give()
        return observed(MARK, (f"enumerate(DataLoader)#{self.shown}.__next__", None), (), (), self.give)

    def give(self) -> Any:
        """The next batch.  Raises StopIteration behind the last one."""
        batch = self._next_data()
        self._num_yielded += 1
        self._check.count()
        return batch

    def __getstate__(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} cannot be pickled or copied: make another pass with iter(loader)"
        )


class SerialIterator(LoaderIterator):
    """A pass in this thread."""

    shown = "_SingleProcessDataLoaderIter"

    def __init__(self, loader: Any):
        _, shared = seeds(loader)
        if pipes.is_pipe(loader.dataset):
            pipes.seeded(loader.dataset, shared)
        if loader.timeout != 0:
            raise AssertionError(f"timeout must be 0 without workers, got {loader.timeout}")
        self.indices = iter(loader._index_sampler)
        self.fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        self.length, self.check = length_of(loader), LengthCheck(loader)

    def give(self) -> Any:
        batch = self.fetcher.fetch(next(self.indices))
        self.check.count()
        return batch

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("this loader's dataset has no length")
        return self.length


class WorkerIterator(LoaderIterator):
    """A pass for which workers fetch ahead.  Closed when it ends, fails, or is dropped; kept if they persist."""

    pool: Any = None
    shown = "_MultiProcessingDataLoaderIter"

    def __init__(self, loader: Any):
        seed, shared = seeds(loader)
        self.timeout, self.in_order = loader.timeout or None, loader.in_order
        self.count, self.ahead = loader.num_workers, loader.prefetch_factor
        self.persistent = loader.persistent_workers
        self.length = length_of(loader)
        job = Job(
            loader._dataset_kind,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            loader.worker_init_fn,
            loader.num_workers,
            seed,
            shared,
        )
        context = loader.multiprocessing_context or multiprocessing.get_context()
        thread = getattr(loader, "worker_type", "process") == "thread"
        self.pool = ThreadPool(job) if thread else ProcessPool(job, context)
        self._begin(loader)

    def _reset(self, loader: object, first_iter: bool = False) -> None:
        """Begin another pass with the workers of the last."""
        self._finish_pending()
        for worker in range(self.count):
            self.pool.send(worker, ("resume", None))
        for _ in range(self.count):
            self._receive()
        self._begin(loader)

    def _begin(self, loader: Any) -> None:
        self.indices = iter(loader._index_sampler)
        self.check = LengthCheck(loader)
        self.sent = self.given = 0
        self.owner: dict[int, int] = {}  # of each task that is not answered: its worker
        self.batches: dict[int, Any] = {}  # answers that wait for their turn
        self.load = dict.fromkeys(range(self.count), 0)  # tasks of each worker that has not ended
        self.turn = 0
        self.exhausted = False
        for _ in range(self.ahead * self.count):
            self._send_next()

    def _send_next(self) -> None:
        """Give the next index to the worker whose turn it is, unless all have enough to do."""
        worker = self._choose()
        if worker is None or self.exhausted:
            return
        try:
            index = next(self.indices)
        except StopIteration:
            self.exhausted = True
            return
        self.pool.send(worker, (self.sent, index))
        self.owner[self.sent] = worker
        self.load[worker] += 1
        self.sent += 1

    def _choose(self) -> int | None:
        if not self.load:
            return None
        if not self.in_order:
            least = min(self.load, key=lambda worker: self.load[worker])
            return least if self.load[least] < self.ahead else None
        if sum(self.load.values()) >= self.ahead * len(self.load):
            return None
        for step in range(self.count):
            worker: int = (self.turn + step) % self.count
            if worker in self.load:
                self.turn = worker + 1
                return worker
        return None

    def give(self) -> Any:
        if self.pool is None:
            raise StopIteration
        try:
            batch = self._next_batch()
        except StopIteration:
            if not self.persistent:
                self.close()
            raise
        except BaseException:
            self.close()
            raise
        self._send_next()
        if isinstance(batch, Failure):
            batch.reraise()
        self.check.count()
        return batch

    def _next_batch(self) -> object:
        """The batch whose turn it is."""
        while True:
            if self.in_order:
                while self.given < self.sent and self.given not in self.owner and self.given not in self.batches:
                    self.given += 1  # a task of a worker that had ended
                if self.given in self.batches:
                    self.given += 1
                    return self.batches.pop(self.given - 1)
            if not self.owner:
                raise StopIteration
            self._take()
            if not self.in_order and self.batches:
                return self.batches.popitem()[1]

    def _take(self) -> None:
        """Receive one answer."""
        worker, number, batch = self._receive()
        del self.owner[number]
        if worker in self.load:
            self.load[worker] -= 1
        if isinstance(batch, str) and batch == END:
            self.load.pop(worker, None)
            self._send_next()
        else:
            self.batches[number] = batch

    def _receive(self) -> Any:
        try:
            return self.pool.receive(self.timeout)
        except TimeoutError:
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None

    def _finish_pending(self) -> None:
        while self.owner:
            del self.owner[self._receive()[1]]
        self.batches.clear()

    def close(self) -> None:
        """End the workers."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.close()

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("this loader's dataset has no length")
        return self.length

    _shutdown_workers = close  # trainers end workers that persist by it

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()
