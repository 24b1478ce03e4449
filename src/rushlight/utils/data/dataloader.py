"""DataLoader: batches of a dataset, in order or at random, fetched here or by workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from rushlight.basics.caller import warn
from rushlight.generator import Generator
from rushlight.utils.data._utils import pipes
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import _DatasetKind
from rushlight.utils.data._utils.iterators import LoaderIterator, SerialIterator, WorkerIterator
from rushlight.utils.data._utils.worker import _sharding_worker_init_fn as _sharding_worker_init_fn
from rushlight.utils.data._utils.worker import get_worker_info
from rushlight.utils.data.dataset import Dataset as Dataset
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_BaseDataLoaderIter, _SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = (
    LoaderIterator,
    SerialIterator,
    WorkerIterator,
)
T_co = TypeVar("T_co", covariant=True)
# What libraries annotate their own loaders with.
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[Any]], Any]
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Forever(Sampler[Any]):
    """The sampler of iterable datasets: they choose themselves."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


_InfiniteConstantSampler = _Forever


class _Keyed(Protocol[T_co]):
    """Samples by key, of a class that is no Dataset."""

    def __getitem__(self, key: Any, /) -> T_co: ...


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    Args:
        dataset: a Dataset, an IterableDataset, or anything with `__getitem__` and `__len__`.
        batch_size: samples in a batch; None gives samples as they are.
        shuffle: in a new random order at each pass.
        sampler: an iterable of keys, in place of shuffle.
        batch_sampler: an iterable of lists of keys, in place of batch_size, shuffle, sampler and drop_last.
        num_workers: workers that fetch ahead; 0 fetches in this thread.
        collate_fn: makes a batch out of a list of samples.
        pin_memory, pin_memory_device: accepted; there is no memory to pin without a GPU.
        drop_last: leave out a last batch that is smaller.
        timeout: seconds to wait for a batch from workers; 0 waits for ever.
        worker_init_fn: called with the worker's number in each worker, before it fetches.
        multiprocessing_context: a start method or a context of multiprocessing.
        generator: where orders and the seeds of workers come from.
        prefetch_factor: batches that each worker is ahead; 2 unless given.
        persistent_workers: keep workers from one pass to the next: their random numbers go on, and no seed is drawn for them.
        in_order: give batches in the order of their indices; False: as they come.
        worker_type: "process" (as PyTorch), or "thread": nothing is copied or pickled, and dataset and random
            generators are shared, so random transformations should use generators of their own.

    An exception in a worker is raised here, in its class, with the worker's traceback.  Workers in processes send
    large arrays through shared memory.

    Example:
        >>> import rushlight as torch
        >>> for batch in torch.utils.data.DataLoader(range(5), batch_size=2):
        ...     print(batch)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    _iterator: Any = None
    _IterableDataset_len_called: int | None = None
    worker_type = "process"  # of loaders that libraries write
    _ready = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Iterable[T_co] | _Keyed[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: object = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_type: str = "process",
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, worker_type)
        _check_sampling(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if pipes.is_pipe(dataset):
            dataset = pipes.shuffled(dataset, shuffle)
        self.dataset: Any = dataset
        self.num_workers, self.timeout = num_workers, timeout
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.worker_type, self.in_order = worker_init_fn, worker_type, in_order
        self.generator, self.persistent_workers = generator, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        self.sampler = self._default_sampler(shuffle) if sampler is None else sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._ready = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool | None) -> Iterable[Any]:
        if isinstance(self.dataset, IterableDataset):
            return _Forever()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: object) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _sized(self) -> bool:
        sampler = self._index_sampler
        inner = getattr(sampler, "sampler", sampler)
        return hasattr(sampler, "__len__") and hasattr(inner, "__len__")

    @property
    def multiprocessing_context(self) -> Any:
        """The context of multiprocessing that workers are started by; None: Python's default."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: object) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self.__context = context

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or getattr(self._iterator, "pool", self) is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        kept: Iterator[Any] = self._iterator
        return kept

    def _get_iterator(self) -> Iterator[Any]:
        """What a pass iterates over: loaders of libraries wrap it."""
        return SerialIterator(self) if self.num_workers == 0 else WorkerIterator(self)

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length: Any = self.dataset
        count = len(length)
        if self.batch_size is not None:
            count = count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        self._IterableDataset_len_called = count
        return count

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more worker processes than processors."""
        if not self.num_workers or self.worker_type == "thread":
            return
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if most is not None and self.num_workers > most:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary."
            )


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, worker_type: str
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing, "
            f"got {num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(f"prefetch_factor option should be non-negative, and 1 or more: got {prefetch_factor}")
    if prefetch_factor == 0:
        raise AssertionError("prefetch_factor option should be positive, got 0: workers would never begin")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if worker_type not in ("process", "thread"):
        raise ValueError(f"worker_type must be 'process' or 'thread', got {worker_type!r}")


def _check_sampling(
    dataset: Any, batch_size: object, shuffle: object, sampler: object, batch_sampler: object, drop_last: bool
) -> None:
    if isinstance(dataset, IterableDataset):
        shuffles = None if pipes.is_pipe(dataset) else shuffle or None
        given = {"shuffle": shuffles, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context: object, num_workers: int) -> object:
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context
