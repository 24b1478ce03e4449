"""Groups of workers, in threads or in processes, behind one interface."""

from __future__ import annotations

import os
import queue
import threading
import time
import warnings
import weakref
from multiprocessing.connection import wait
from typing import Any

from rushlight.utils.data._utils import transfer
from rushlight.utils.data._utils.worker import Job, process_main, thread_main

PATIENCE = 5.0  # seconds that a process has to end by itself


class ThreadPool:
    """Workers in threads of this process: they share its memory, and NumPy lets them run at the same time."""

    def __init__(self, job: Job):
        self.answers: Any = queue.SimpleQueue()
        self.tasks: list[Any] = [queue.SimpleQueue() for _ in range(job.count)]
        self.stop = threading.Event()
        self.threads = []
        for id, tasks in enumerate(self.tasks):
            args = (job, id, tasks, self.answers, self.stop)
            thread = threading.Thread(target=thread_main, args=args, name=f"rushlight-loader-{id}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def send(self, worker: int, task: object) -> None:
        """Give a worker a task."""
        self.tasks[worker].put(task)

    def receive(self, timeout: float | None) -> Any:
        """The next answer.  Raises TimeoutError when there is none within `timeout` seconds."""
        try:
            return self.answers.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None

    def close(self) -> None:
        """Let the workers end what they are at, and wait for that."""
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(PATIENCE)


_alive: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


def _our_ends() -> list[Any]:
    """This process's ends of all pipes to workers: a forked worker that kept one would hide that it was closed."""
    return [c for pool in _alive for c in (*pool.tasks, *pool.answers) if not c.closed]


class ProcessPool:
    """Workers in processes of their own.  context: of multiprocessing, says how they are started."""

    def __init__(self, job: Job, context: Any):
        self.tasks: list[Any] = []
        self.answers: list[Any] = []
        self.processes: list[Any] = []
        self.ready: list[Any] = []
        self.pid = os.getpid()
        _alive.add(self)
        try:
            for id in range(job.count):
                self._start(job, id, context)
        except BaseException:
            self.close()
            raise

    def _start(self, job: Job, id: int, context: Any) -> None:
        tasks_there, tasks_here = context.Pipe(duplex=False)
        answers_here, answers_there = context.Pipe(duplex=True)
        self.tasks.append(tasks_here)
        self.answers.append(answers_here)
        inherited = _our_ends() if context.get_start_method() == "fork" else []
        args = (job, id, tasks_there, answers_there, inherited)
        process = context.Process(target=process_main, args=args, name=f"rushlight-loader-{id}", daemon=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)  # BLAS threads: the child makes its own
            process.start()
        self.processes.append(process)
        tasks_there.close()
        answers_there.close()

    def send(self, worker: int, task: object) -> None:
        """Give a worker a task."""
        try:
            self.tasks[worker].send(task)
        except OSError:
            pass  # it is gone: `receive` says so

    def receive(self, timeout: float | None) -> Any:
        """The next answer.  Raises TimeoutError, and RuntimeError when a worker is gone."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            if not self.ready:
                left = None if end is None else max(0.0, end - time.monotonic())
                open_ends = [c for c in self.answers if not c.closed]
                self.ready = list(wait(open_ends, left))
                if not self.ready:
                    raise TimeoutError
            connection = self.ready.pop(0)
            try:
                return transfer.receive(connection)
            except (EOFError, OSError):
                self._died(connection)

    def _died(self, connection: Any) -> None:
        process = self.processes[self.answers.index(connection)]
        connection.close()
        process.join(PATIENCE)
        code = process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        advice = "; perhaps the system ran out of memory" if code == -9 else ""
        raise RuntimeError(f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly: it {how}{advice}")

    def close(self) -> None:
        """End the workers: they have some seconds to do so by themselves.  In a process that inherited this object: nothing."""
        if os.getpid() != self.pid:
            return
        _alive.discard(self)
        for worker, connection in enumerate(self.tasks):
            self.send(worker, None)
            connection.close()
        for connection in self.answers:
            if not connection.closed:
                connection.close()
        end = time.monotonic() + PATIENCE
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self.processes = []
