"""Tensors in memory that other processes see, and processes that are started, waited for and ended together."""

from __future__ import annotations

import gc
import multiprocessing as standard
import os
import pickle
import signal
import sys
import time
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake
from tests.processes import printed, printed_as_torch

import rushlight as torch
from rushlight import multiprocessing as mp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors go over sockets of Linux")
FORK: Any = standard.get_context("fork")


def fill(tensor: Any, value: float) -> None:
    tensor.data.fill_(value)


def fill_received(queue: Any, done: Any) -> None:
    queue.get().fill_(4)
    done.set()


def send(queue: Any, done: Any) -> None:
    torch.manual_seed(0)
    whole = torch.arange(6.0)
    queue.put((whole, whole.view(2, 3).t(), torch.ones(2, dtype=torch.bfloat16), torch.nn.Parameter(torch.ones(1)), torch.zeros(0, 3),
               torch.tensor([1 + 2j]).conj(), torch.eye(2).to_sparse()))  # fmt: skip
    done.wait(30)


def add_rank(rank: int, tensor: Any) -> None:
    tensor[rank] += rank + 1


def fail(rank: int) -> None:
    raise ValueError(f"of {rank}")


def leave(rank: int) -> None:
    sys.exit(7)


def killed(rank: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train(model: Any, x: Any, y: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


def run(target: Any, *args: Any, context: Any = FORK) -> None:
    process = context.Process(target=target, args=args)
    process.start()
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.parametrize("views", [0, 1, 2, 3])
@pytest.mark.parametrize("mover", ["whole", "view", "storage"])
def test_all_tensors_on_the_memory_come_with_it(views: int, mover: str) -> None:
    whole = torch.arange(4.0)
    parts = [whole[i:] for i in range(views)]
    moved = {"whole": whole, "view": parts[-1] if parts else whole, "storage": whole.untyped_storage()}[mover]
    version = whole._version
    assert not moved.is_shared()
    assert moved.share_memory_() is moved
    assert whole.is_shared() and all(part.is_shared() for part in parts)
    whole[3] = 9.0
    assert [part[-1].item() for part in parts] == [9.0] * views
    assert {t.untyped_storage().data_ptr() for t in (whole, *parts)} == {whole.data_ptr()}
    assert whole._version == version + 1
    pointer = whole.data_ptr()
    assert whole.share_memory_().data_ptr() == pointer


def test_strides_dtypes_and_gradients_stay_what_they_were() -> None:
    turned = torch.arange(6.0).view(2, 3).t().contiguous().t().share_memory_()
    assert turned.stride() == (1, 2) and turned.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.ones(2, dtype=torch.bfloat16).share_memory_().tolist() == [1, 1]
    assert torch.zeros(0).share_memory_().is_shared()
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.share_memory_()
    y.backward()
    assert x.grad.tolist() == [2, 2] and x.is_leaf
    array = np.ones(2)
    torch.from_numpy(array).share_memory_().fill_(3)
    assert array.tolist() == [1, 1]  # as in PyTorch


def test_another_process_writes_what_this_one_reads() -> None:
    tensor, weight = torch.zeros(3).share_memory_(), torch.nn.Parameter(torch.zeros(2)).share_memory_()
    run(fill, tensor, 7.0)
    run(fill, weight, 2.0, context=standard.get_context("spawn"))
    assert tensor.tolist() == [7, 7, 7] and weight.tolist() == [2, 2]


def test_what_a_queue_takes_is_shared() -> None:
    queue, done = FORK.Queue(), FORK.Event()
    process = FORK.Process(target=fill_received, args=(queue, done))
    process.start()
    tensor = torch.zeros(3)
    queue.put(tensor)
    assert done.wait(30) and tensor.tolist() == [4, 4, 4] and tensor.is_shared()
    process.join(30)


def test_what_another_process_sends_is_what_it_was() -> None:
    queue, done = FORK.Queue(), FORK.Event()
    process = FORK.Process(target=send, args=(queue, done))
    process.start()
    whole, turned, half, weight, empty, conjugate, sparse = queue.get(timeout=30)
    done.set()
    process.join(30)
    whole[1] = 9.0
    assert turned.tolist() == [[0, 3], [9, 4], [2, 5]] and turned.stride() == (1, 3)
    assert half.dtype is torch.bfloat16 and half.tolist() == [1, 1]
    assert type(weight) is torch.nn.Parameter and weight.requires_grad and empty.shape == (0, 3)
    assert conjugate.is_conj() and conjugate.tolist() == [1 - 2j]
    assert sparse.to_dense().tolist() == [[1, 0], [0, 1]]


def test_what_comes_twice_is_one_memory() -> None:
    queue = FORK.SimpleQueue()
    tensor = torch.arange(4.0).share_memory_()
    queue.put(tensor)
    queue.put(tensor[2:])
    first, second = queue.get(), queue.get()
    second[0] = 8.0
    assert tensor.tolist() == first.tolist() == [0, 1, 8, 3]
    assert first.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr() and second.storage_offset() == 2


def test_graphs_stay_in_their_process() -> None:
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(torch.ones(2, requires_grad=True) * 2)


def exchange(count: int) -> None:
    """Send tensors in shared memory through a queue of this process."""
    tensors = [torch.ones(10).share_memory_() for _ in range(count)]
    queue = FORK.SimpleQueue()
    queue.put(tensors)
    assert len(queue.get()) == count
    queue.close()


def test_no_descriptor_stays_open() -> None:
    exchange(1)  # what the standard library opens once stays open
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    exchange(20)
    end = (
        time.monotonic() + 20
    )  # whoever hands the last ones out is a thread, which closes its own after they have arrived
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < end:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_model_is_trained_by_two_processes() -> None:
    torch.manual_seed(0)
    model, x = torch.nn.Linear(3, 1), torch.randn(32, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    assert model.share_memory() is model and all(p.is_shared() for p in model.parameters())
    workers = [FORK.Process(target=train, args=(model, x, y)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert (model(x) - y).square().mean().item() < 1e-3
    torch.optim.Adagrad(model.parameters()).share_memory()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # from Python 3.12 on, of forks beside threads
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_functions_are_called_with_their_rank(method: str) -> None:
    tensor = torch.zeros(3).share_memory_()
    assert mp.start_processes(add_rank, (tensor,), nprocs=3, start_method=method) is None
    assert tensor.tolist() == [1, 2, 3]
    with pytest.warns(FutureWarning, match="start_processes"):
        mp.spawn(add_rank, (tensor,), nprocs=1, start_method="fork")
    context = mp.start_processes(add_rank, (tensor,), nprocs=2, join=False, start_method=method)
    assert len(context.pids()) == 2
    while not context.join(timeout=30):
        pass
    assert tensor.tolist() == [3, 4, 3]


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (
            fail,
            mp.ProcessRaisedException,
            r"-- Process [01] terminated with the following error:(.|\n)*ValueError: of [01]",
        ),
        (leave, mp.ProcessExitedException, "process [01] terminated with exit code 7"),
        (killed, mp.ProcessExitedException, "process [01] terminated with signal SIGKILL"),
    ],
)
def test_a_process_that_fails_ends_all(function: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as told:
        mp.start_processes(function, nprocs=2, start_method="fork")
    error: Any = told.value
    assert error.error_index in (0, 1) and error.error_pid > 0
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_strategies_have_names() -> None:
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'pigeons'"):
        mp.set_sharing_strategy("pigeons")


def test_memory_that_may_move_is_not_shared() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)])
    optimizer = torch.optim.Adam(model.parameters())
    with awake():
        for _ in range(2):
            model(torch.ones(2, 512)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        paged = [p for p in model.parameters() if p.untyped_storage().page is not None]
        assert paged
        with pytest.raises(RuntimeError, match="in a budget"):
            paged[0].share_memory_()
    assert model[0].weight.share_memory_().is_shared()


def test_shared_memory_stays_where_it_is_in_a_budget() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).share_memory()
    optimizer = torch.optim.Adam(model.parameters())
    with awake():
        for _ in range(2):
            model(torch.ones(2, 512)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert all(p.is_shared() for p in model.parameters())


def test_what_has_no_memory_of_its_own_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="share_memory"):
        torch.eye(2).to_sparse().share_memory_()


def test_the_module_that_starts_processes_is_imported_and_its_function_stays_where_it_is() -> None:
    code = (
        "from torch.multiprocessing.spawn import ProcessContext, spawn\n"
        "import torch.multiprocessing as mp\n"
        "assert mp.spawn is spawn and mp.ProcessContext is ProcessContext\n"
    )
    printed_as_torch(code)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_is_shared_stays_so_in_processes_of_the_standard_library(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""
import multiprocessing
import rushlight as torch

def change(t):
    t.add_(1)

if __name__ == "__main__":
    shared = torch.zeros(3).share_memory_()
    process = multiprocessing.get_context("{method}").Process(target=change, args=(shared,))
    process.start()
    process.join()
    assert process.exitcode == 0 and shared.tolist() == [1, 1, 1]
""")
    printed(script)
