"""Workers: what they know of themselves, and what they do."""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rushlight.backends import blas
from rushlight.generator import default_generator
from rushlight.kernels import set_num_threads
from rushlight.utils.data._utils import pipes, transfer
from rushlight.utils.data._utils.errors import Failure
from rushlight.utils.data._utils.fetch import _DatasetKind
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.graph_settings import apply_sharding

END = "end"  # in place of a batch: the worker's part of an iterable dataset is at its end


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows.  rng: always None, workers in threads share the generators; worker_method: "multiprocessing" or "thread"."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str = "multiprocessing"


class _Local(threading.local):
    info: WorkerInfo | None = None


_local = _Local()
_worker_info: WorkerInfo | None = None  # of a process that another library's loader started, which says so here


def get_worker_info() -> WorkerInfo | None:
    """What the worker that this runs in knows of itself; None outside of workers."""
    return _local.info or _worker_info


def _sharding_worker_init_fn(init: Callable[[int], object] | None, processes: int, process: int, worker: int) -> None:
    """Share the datapipe of a worker among all workers of all processes, and call a function of the worker's number.

    Workers of loaders that libraries write begin with it.
    """
    info = get_worker_info()
    assert info is not None
    apply_sharding(info.dataset, processes, process, SHARDING_PRIORITIES.DISTRIBUTED)
    apply_sharding(info.dataset, info.num_workers, worker, SHARDING_PRIORITIES.MULTIPROCESSING)
    if init is not None:
        init(worker)


class ManagerWatchdog:
    """Whether the process that started a worker is there, for loops of workers that libraries write."""

    def __init__(self) -> None:
        self._parent = os.getppid()

    def is_alive(self) -> bool:
        """Whether it is."""
        return os.getppid() == self._parent


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """What such a worker sends at the end of its part of a dataset."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """What such a worker is sent before another pass.  seed: of datapipes"""

    seed: int | None = None


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that seed NumPy in a worker.  Source: NumPy's SeedSequence, of the two numbers."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(x) for x in np.random.SeedSequence(words).generate_state(4)]


class Job:
    """What a worker is to do: the same for all workers of a loader, but for the id."""

    def __init__(
        self,
        kind: int,
        dataset: Any,
        batched: bool,
        collate: Callable[[Any], Any],
        drop_last: bool,
        init: Callable[[int], Any] | None,
        count: int,
        seed: int,
        shared: int = 0,
    ):
        """kind: of the dataset, as `_DatasetKind` has it.  shared: of datapipes, the seed that is the same for all workers."""
        self.kind, self.shared = kind, shared
        self.dataset, self.batched, self.collate, self.drop_last = dataset, batched, collate, drop_last
        self.init, self.count, self.seed = init, count, seed


class Worker:
    """Answers tasks: pairs (number, index), or ("resume", None) to begin again.  own: not shared with other workers."""

    def __init__(self, job: Job, id: int, kind: str, own: bool):
        self.job, self.id, self.own = job, id, own
        self.where = f"in DataLoader worker {kind} {id}"
        self.method = "thread" if kind == "thread" else "multiprocessing"
        self.fetcher: Any = None
        self.failure: Failure | None = None
        self.ended = False
        self.passes = 0

    def start(self) -> None:
        """Get ready; an exception is kept for the first answer."""
        job = self.job
        _local.info = WorkerInfo(self.id, job.count, job.seed + self.id, job.dataset, None, self.method)
        try:
            if self.own:
                _seed_everything(job.seed, self.id)
            if job.init is not None:
                job.init(self.id)
        except Exception as error:
            self.failure = Failure(error, self.where)
        self.begin()

    def begin(self) -> None:
        """Get ready for a pass: of the dataset anew, of random numbers where the last one ended."""
        job = self.job
        try:
            dataset = (
                pipes.of_worker(job, self.id, self.own, self.passes) if pipes.is_pipe(job.dataset) else job.dataset
            )
            self.fetcher = _DatasetKind.create_fetcher(job.kind, dataset, job.batched, job.collate, job.drop_last)
            self.passes += 1
        except Exception as error:
            self.failure = self.failure or Failure(error, self.where)
        self.ended = False

    def answer(self, task: Any) -> Any:
        """The answer to a task: (worker, number, batch or Failure or END)."""
        number, index = task
        if number == "resume":
            self.begin()
            return self.id, number, None
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return self.id, number, failure
        try:
            return self.id, number, END if self.ended else self.fetcher.fetch(index)
        except StopIteration:
            self.ended = True
            return self.id, number, END
        except Exception as error:
            return self.id, number, Failure(error, self.where)


def _seed_everything(base_seed: int, worker_id: int) -> None:
    random.seed(base_seed + worker_id)
    default_generator.manual_seed(base_seed + worker_id)
    np.random.seed(_generate_state(base_seed, worker_id))


# In a thread ---------------------------------------------------------------------------------------


def thread_main(job: Job, id: int, tasks: Any, answers: Any, stop: threading.Event) -> None:
    """A worker in a thread: answers until it is told to stop."""
    worker = Worker(job, id, "thread", own=False)
    worker.start()
    while (task := tasks.get()) is not None and not stop.is_set():
        answers.put(worker.answer(task))
        task = None  # hold nothing while waiting


# In a process --------------------------------------------------------------------------------------


def process_main(job: Job, id: int, tasks: Connection, answers: Connection, others: list[Connection]) -> None:
    """A worker in a process: answers until its tasks end or its parent is gone.  others: ends to be closed."""
    for connection in others:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the workers
    _use_one_thread()
    waiting: Any = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks, waiting, os.getppid()), daemon=True).start()
    worker = Worker(job, id, "process", own=True)
    worker.start()
    while (task := waiting.get()) is not None:
        if not _reply(answers, worker.answer(task), worker.where):
            break
        task = None
    answers.close()


def _use_one_thread() -> None:
    """The workers are the parallelism."""
    set_num_threads(1)
    blas.set_num_threads(1)


def _listen(tasks: Connection, waiting: Any, parent: int) -> None:
    """Take tasks as they come, so that the parent never waits; end everything when it is gone."""
    try:
        while True:
            while not tasks.poll(1.0):
                if os.getppid() != parent:
                    os._exit(1)
            task = tasks.recv()
            waiting.put(task)
            if task is None:
                return
    except (EOFError, OSError):
        if os.getppid() != parent:
            os._exit(1)
        waiting.put(None)


def _reply(answers: Connection, answer: Any, where: str) -> bool:
    """Send an answer, or why it cannot be sent; whether anybody is there."""
    try:
        try:
            transfer.send(answers, answer)
        except (BrokenPipeError, ConnectionError):
            return False
        except Exception as error:
            transfer.send(answers, (*answer[:2], Failure(error, where)))
    except (BrokenPipeError, ConnectionError):
        return False
    return True
