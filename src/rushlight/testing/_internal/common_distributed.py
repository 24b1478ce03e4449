"""`torch.testing._internal.common_distributed`: tests of which each process of a group runs the same method."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import io
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any, ClassVar, NamedTuple

import rushlight as torch
from rushlight.testing._internal.common_utils import TestCase

__all__ = ["DEFAULT_WORLD_SIZE", "DistributedTestBase", "MultiProcessTestCase", "TEST_SKIPS", "TIMEOUT_DEFAULT",
           "TIMEOUT_OVERRIDE", "TestSkip", "at_least_x_gpu", "captured_output", "create_tcp_store", "get_timeout",
           "nccl_skip_if_lt_x_gpu", "require_n_gpus_for_nccl_backend", "requires_gloo", "requires_mpi",
           "requires_nccl", "requires_nccl_version", "requires_ucc", "skip_if_lt_x_gpu", "skip_if_no_gpu",
           "skip_if_odd_worldsize", "skip_if_small_worldsize", "skip_if_win32",
           "with_dist_debug_levels"]  # fmt: skip

dist: Any = torch.distributed
Test = Callable[..., Any]

FILE_SCHEMA = "file://"
DEFAULT_WORLD_SIZE = 4
TIMEOUT_DEFAULT = int(os.environ.get("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "300"))  # seconds
TIMEOUT_OVERRIDE = {"test_ddp_uneven_inputs": 400, "test_DistributedDataParallel": 500}
HAS_ACCELERATOR, DDP_RANK_DEVICES = False, ["cuda", "xpu"]


class TestSkip(NamedTuple):
    """How a process says that a test is not for it."""

    exit_code: int
    message: str


TestSkip.__test__ = False  # type: ignore[attr-defined]  # no class of tests
TEST_SKIPS = {
    "backend_unavailable": TestSkip(72, "Skipped because distributed backend is not available."),
    "small_worldsize": TestSkip(73, "Skipped due to small world size."),
    "odd_worldsize": TestSkip(87, "Skipped due to odd world size."),
    "no_cuda": TestSkip(74, "CUDA is not available."),
    **{f"multi-gpu-{n}": TestSkip(code, f"Need at least {n} CUDA device{'s' * (n > 1)}")
       for n, code in ((1, 75), (2, 77), (3, 80), (4, 81), (5, 82), (6, 83), (7, 84), (8, 85))},
    "nccl": TestSkip(76, "c10d not compiled with NCCL support"),
    "no_peer_access": TestSkip(79, "Test skipped because no GPU peer access"),
    "generic": TestSkip(86, "Test skipped at subprocess level, look at subprocess log for skip reason"),
    "importerror": TestSkip(88, "Test skipped due to missing import"),
    "no_accelerator": TestSkip(89, "accelerator is not available."),
}  # fmt: skip


def ends(reason: str, when: Callable[[], bool] = lambda: True) -> Callable[[Test], Test]:
    """A decorator of tests that end their process where something holds, which is told as a test that is skipped."""

    def decorator(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if when():
                sys.exit(TEST_SKIPS[reason].exit_code)
            return test(*args, **kwargs)

        return run

    return decorator


def skip_if_lt_x_gpu(x: int, *, allow_cpu: bool = False) -> Callable[[Test], Test]:
    """A decorator of tests that need GPUs, of which there are none."""
    return ends(f"multi-gpu-{x}", lambda: x > 0 and not allow_cpu)


def nccl_skip_if_lt_x_gpu(backend: str, x: int) -> Callable[[Test], Test]:
    """As `skip_if_lt_x_gpu`, where the backend is NCCL."""
    return ends(f"multi-gpu-{x}", lambda: backend == "nccl")


def require_n_gpus_for_nccl_backend(n: int, backend: str) -> Callable[[Test], Test]:
    """As `nccl_skip_if_lt_x_gpu`."""
    return nccl_skip_if_lt_x_gpu(backend, n)


def skip_if_no_gpu(func: Test) -> Test:
    """A decorator of tests that need a GPU."""
    return ends("no_cuda")(func)


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", DEFAULT_WORLD_SIZE))


def skip_if_small_worldsize(func: Test) -> Test:
    """A decorator of tests that need three processes, unless the backend is MPI."""
    return ends("small_worldsize", lambda: os.environ.get("BACKEND") != "mpi" and _world_size() <= 2)(func)


def skip_if_odd_worldsize(func: Test) -> Test:
    """A decorator of tests that need an even number of processes, unless the backend is MPI."""
    return ends("odd_worldsize", lambda: os.environ.get("BACKEND") != "mpi" and _world_size() % 2 == 1)(func)


def at_least_x_gpu(x: int) -> bool:
    """Whether there are so many GPUs: none."""
    return x <= 0


def _unless(there: bool, reason: str) -> Callable[[Test], Test]:
    return unittest.skipIf(not there, reason)


def requires_gloo() -> Callable[[Test], Test]:
    """A decorator of tests of the backend gloo, which is there."""
    return _unless(dist.is_gloo_available(), "c10d was not compiled with the Gloo backend")


def requires_nccl() -> Callable[[Test], Test]:
    """A decorator of tests of NCCL, which is not there."""
    return _unless(dist.is_nccl_available(), "c10d was not compiled with the NCCL backend")


def requires_nccl_version(version: object, msg: str) -> Callable[[Test], Test]:
    """A decorator of tests of a version of NCCL, which is not there."""
    return _unless(False, f"Requires NCCL version greater than or equal to: {version}, reason: {msg}")


def requires_ucc() -> Callable[[Test], Test]:
    """A decorator of tests of UCC, which is not there."""
    return _unless(dist.is_ucc_available(), "c10d was not compiled with the UCC backend")


def requires_mpi() -> Callable[[Test], Test]:
    """A decorator of tests of MPI, which is there with mpi4py."""
    return _unless(dist.is_mpi_available(), "c10d was not compiled with the MPI backend")


def skip_if_win32() -> Callable[[Test], Test]:
    """A decorator of tests that are not for Windows."""
    return unittest.skipIf(sys.platform == "win32", "This unit test case is not supported on Windows platform")


def create_tcp_store(
    addr: str = "localhost",
    world_size: int = 1,
    is_master: bool = True,
    timeout: timedelta = timedelta(minutes=5),
    wait_for_workers: bool = True,
    jit_class: bool = False,
    use_libuv: bool = True,
) -> Any:
    """A store at a port that is free."""
    return dist.TCPStore(addr, 0, world_size, is_master, timeout, wait_for_workers=wait_for_workers)


def get_timeout(test_id: str) -> int:
    """The seconds that a test may take."""
    return TIMEOUT_OVERRIDE.get(test_id.split(".")[-1], TIMEOUT_DEFAULT)


@contextlib.contextmanager
def captured_output() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """What is printed within: its output and its errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def with_dist_debug_levels(levels: list[str]) -> Callable[[Test], Test]:
    """A decorator of tests that run once with each value of TORCH_DISTRIBUTED_DEBUG."""

    def decorator(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            before = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")
            try:
                for level in levels:
                    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
                    dist.set_debug_level_from_env()
                    test(*args, **kwargs)
            finally:
                os.environ["TORCH_DISTRIBUTED_DEBUG"] = before
                dist.set_debug_level_from_env()

        return run

    return decorator


class MultiProcessTestCase(TestCase):
    """Tests that all processes of a group run: `_spawn_processes()` in `setUp` starts them, and waits for them instead of a test.

    In a process `rank` is its number and `file_name` a file by which they meet; what one raises is raised by the test.
    """

    MAIN_PROCESS_RANK: ClassVar[int] = -1
    TEST_ERROR_EXIT_CODE: ClassVar[int] = 10

    def __init__(self, method_name: str = "runTest", methodName: str = "runTest") -> None:
        name = methodName if method_name == "runTest" else method_name
        super().__init__(name)
        self.rank = self.MAIN_PROCESS_RANK
        if hasattr(self, name):
            setattr(self, name, self.join_or_run(getattr(self, name)))

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return DEFAULT_WORLD_SIZE

    @property
    def destroy_pg_upon_exit(self) -> bool:
        """Whether a process's group is given back when its test is done."""
        return True

    @property
    def is_master(self) -> bool:
        """Whether this process has the number 0."""
        return self.rank == 0

    def join_or_run(self, fn: Test) -> Test:
        """A test that waits for the processes, in the one that started them, and runs in these."""

        @functools.wraps(fn)
        def run(*_: Any) -> None:
            if self.rank == self.MAIN_PROCESS_RANK:
                self._join_processes(fn)
            else:
                fn()

        return run

    def setUp(self) -> None:
        super().setUp()
        self.skip_return_code_checks: list[Any] = []
        self.processes: list[Any] = []
        self.pid_to_pipe: dict[int, Connection] = {}
        with tempfile.NamedTemporaryFile(delete=False) as file:
            self.file_name = file.name

    def tearDown(self) -> None:
        super().tearDown()
        for process in self.processes:
            process.terminate()
            process.join()
        for pipe in self.pid_to_pipe.values():
            pipe.close()
        self.processes = []
        with contextlib.suppress(OSError):
            os.remove(self.file_name)

    def _current_test_name(self) -> str:
        return str(self.id()).split(".")[-1]

    def _spawn_processes(self, world_size: int | None = None) -> None:
        """Start the processes anew."""
        self._start(multiprocessing.get_context("spawn"), world_size)

    def _fork_processes(self) -> None:
        """Start the processes as copies of this one."""
        self._start(multiprocessing.get_context("fork"), None)

    def _start(self, context: Any, world_size: int | None) -> None:
        for rank in range(self.world_size if world_size is None else world_size):
            ours, theirs = context.Pipe()
            args = (rank, self._current_test_name(), self.file_name, theirs)
            process = context.Process(target=type(self)._run, name=f"process {rank}", args=args)
            process.start()
            theirs.close()
            self.pid_to_pipe[process.pid] = ours
            self.processes.append(process)

    @classmethod
    def _run(cls, rank: int, test_name: str, file_name: str, parent_pipe: Connection, **_: Any) -> None:
        test = cls(test_name)
        test.rank, test.file_name = rank, file_name
        test.run_test(test_name, parent_pipe)

    def run_test(self, test_name: str, parent_pipe: Connection) -> None:
        """Run a test in its process; what it raises is sent, and the process ends with a status that says so."""
        faulthandler.enable()
        try:
            getattr(self, test_name)()
        except unittest.SkipTest:
            sys.exit(TEST_SKIPS["generic"].exit_code)
        except Exception:
            parent_pipe.send(traceback.format_exc())
            sys.stdout.flush()
            os._exit(self.TEST_ERROR_EXIT_CODE)  # at once: others may wait for it
        if self.destroy_pg_upon_exit and dist.is_initialized():
            dist.destroy_process_group()

    def _join_processes(self, fn: Test) -> None:
        begin, limit = time.monotonic(), get_timeout(self.id())
        while any(process.is_alive() for process in self.processes):
            failed = any(process.exitcode == self.TEST_ERROR_EXIT_CODE for process in self.processes)
            if failed or time.monotonic() - begin > limit:
                break
            time.sleep(0.05)
        for process in self.processes:
            process.join(5.0 if any(p.exitcode == self.TEST_ERROR_EXIT_CODE for p in self.processes) else 0.0)
        if fn not in self.skip_return_code_checks:
            self._check_return_codes(time.monotonic() - begin)

    def _check_return_codes(self, seconds: float) -> None:
        """Raise what processes raised; SkipTest where they say that the test is not for them."""
        codes = [process.exitcode for process in self.processes]
        errors = [f"Process {i} exited with error code {code} and exception:\n{self._told(self.processes[i])}\n"
                  for i, code in enumerate(codes) if code == self.TEST_ERROR_EXIT_CODE]  # fmt: skip
        if errors:
            raise RuntimeError("\n".join(errors))
        if None in codes:
            raise RuntimeError(f"Process {codes.index(None)} terminated or timed out after {seconds} seconds")
        skip = next((skip for skip in TEST_SKIPS.values() if skip.exit_code == codes[0]), None)
        if skip is not None:
            raise unittest.SkipTest(skip.message)
        assert set(codes) == {0}, f"Expect processes to exit with status 0, got {codes}"

    def _told(self, process: Any) -> object:
        pipe = self.pid_to_pipe[process.pid]
        return pipe.recv() if pipe.poll() else "nothing was told"


class DistributedTestBase(MultiProcessTestCase):
    """Tests whose processes make a group by `create_pg(device)`."""

    def setUp(self) -> None:
        super().setUp()
        os.environ["WORLD_SIZE"] = str(self.world_size)
        self._spawn_processes()

    def tearDown(self) -> None:
        super().tearDown()
        os.environ.pop("WORLD_SIZE", None)

    def backend(self, device: object) -> str:
        """The backend of a device: gloo."""
        return "gloo"

    def create_pg(self, device: object, world_size: int | None = None) -> Any:
        """The group of all processes."""
        count = self.world_size if world_size is None else world_size
        store = dist.FileStore(self.file_name, count)
        dist.init_process_group(self.backend(device), world_size=count, rank=self.rank, store=store)
        return dist.distributed_c10d._get_default_group()

    def rank_to_device(self, device: object) -> dict[int, list[int]]:
        """The device of each process: the CPU, which has the number 0."""
        return {rank: [0] for rank in range(self.world_size)}
