"""DataLoader: batches in this thread, and by workers in threads and processes."""

from __future__ import annotations

import dataclasses
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils import data
from rushlight.utils.data import DataLoader

FORK = "fork" in multiprocessing.get_all_start_methods()
KINDS = ["thread", *(["process"] if FORK else [])]
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def with_workers(dataset, count, kind, **options):
    if kind == "process" and count:
        options.setdefault("multiprocessing_context", "fork")
    return DataLoader(dataset, num_workers=count, worker_type=kind, **options)


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = descriptors(), threading.active_count()
    yield
    assert multiprocessing.active_children() == []
    assert threading.active_count() <= before[1]
    assert descriptors() <= before[0]


class Arrays(data.Dataset):
    """Big enough to go through shared memory."""

    def __init__(self, n, size=5000):
        self.n, self.size = n, size

    def __getitem__(self, i):
        return torch.full((self.size,), float(i)), i

    def __len__(self):
        return self.n


class Count(data.IterableDataset):
    """Each worker gives its part."""

    def __init__(self, n, length=None):
        self.n, self.length = n, length

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))

    def __len__(self):
        if self.length is None:
            raise TypeError("no length")
        return self.length


class Odd(data.Dataset):
    """Samples by a function."""

    def __init__(self, function, n=8):
        self.function, self.n = function, n

    def __getitem__(self, i):
        return self.function(i)

    def __len__(self):
        return self.n


# In this thread ------------------------------------------------------------------------------------


def test_batches():
    assert [b.tolist() for b in DataLoader(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(range(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(range(3), None)) == [0, 1, 2]
    assert list(DataLoader(range(3), 2, collate_fn=list)) == [[0, 1], [2]]
    assert [b.tolist() for b in DataLoader(range(5), batch_sampler=[[4, 0], [1]])] == [[4, 0], [1]]
    assert [b.tolist() for b in DataLoader(range(5), 2, sampler=[3, 1, 2])] == [[3, 1], [2]]
    assert [len(DataLoader(range(5), 2, drop_last=drop)) for drop in (False, True)] == [3, 2]
    iterator = iter(DataLoader(range(5), 2))
    assert len(iterator) == 3 and next(iterator).tolist() == [0, 1]


def test_iterable():
    assert [b.tolist() for b in DataLoader(Count(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Count(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(3), None)) == [0, 1, 2]
    assert len(DataLoader(Count(5, 5), 2)) == 3
    assert len(DataLoader(Count(5, 5), 2, drop_last=True)) == 2
    with pytest.raises(TypeError):
        len(DataLoader(Count(5), 2))
    with pytest.raises(TypeError):
        len(iter(DataLoader(Count(5), 2)))


def test_a_wrong_length_is_noticed():
    loader = DataLoader(Count(5, 2), 1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)


def test_shuffling_is_reproducible_and_changes():
    def order(loader):
        return [int(b) for b in loader]

    torch.manual_seed(0)
    loader = DataLoader(range(50), shuffle=True)
    first, second = order(loader), order(loader)
    assert first != second and sorted(first) == sorted(second) == list(range(50))
    torch.manual_seed(0)
    assert order(DataLoader(range(50), shuffle=True)) == first
    g = torch.Generator()
    loader = DataLoader(range(50), shuffle=True, generator=g)
    g.manual_seed(4)
    third = order(loader)
    g.manual_seed(4)
    assert order(loader) == third


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"num_workers": -1}, ValueError, "num_workers"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor"),
        ({"prefetch_factor": 0, "num_workers": 1}, AssertionError, "prefetch_factor"),
        ({"persistent_workers": True}, ValueError, "persistent_workers"),
        ({"shuffle": True, "sampler": [1]}, ValueError, "mutually exclusive"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "mutually exclusive"),
        ({"batch_sampler": [[1]], "drop_last": True}, ValueError, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "auto-batching"),
        ({"multiprocessing_context": "fork"}, ValueError, "num_workers > 0"),
        ({"multiprocessing_context": "bad", "num_workers": 1}, ValueError, "valid start method"),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "context"),
        ({"worker_type": "fiber"}, ValueError, "'process' or 'thread'"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(range(4), **options)


def test_refusals_for_iterables():
    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match="expected unspecified"):
            DataLoader(Count(3), **options)


def test_fixed_attributes():
    loader = DataLoader(range(3))
    for name in ("batch_size", "sampler", "dataset", "drop_last", "batch_sampler", "persistent_workers"):
        with pytest.raises(ValueError, match="should not be set"):
            setattr(loader, name, None)
    loader.num_workers = 0
    with pytest.raises(AssertionError, match="timeout"):
        iter(DataLoader(range(3), timeout=1))
    with pytest.warns(UserWarning, match="pin_memory"):
        assert len(list(DataLoader(range(3), pin_memory=True))) == 3


def test_many_workers_are_warned_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DataLoader(range(3), num_workers=1000)
        DataLoader(range(3), num_workers=1000, worker_type="thread")
    assert len(caught) == 1 and "1000 worker processes" in str(caught[0].message)


def test_a_dataset_that_raises_stop_iteration_is_no_end():
    def stop(i):
        if i == 3:
            raise StopIteration
        return i

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Odd(stop), 2))


# With workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_give_what_this_thread_gives(kind, workers):
    plain = list(DataLoader(Arrays(20), 3))
    for _ in range(2):
        fetched = list(with_workers(Arrays(20), workers, kind, batch_size=3))
        assert len(fetched) == len(plain) == 7
        for (a, b), (c, d) in zip(plain, fetched, strict=True):
            assert torch.equal(a, c) and torch.equal(b, d)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_can_be_written_to_and_outlive_everything(kind):
    batches = list(with_workers(Arrays(6), 2, kind, batch_size=2))
    gc.collect()
    for i, (a, _) in enumerate(batches):
        a += 1
        assert a[0, 0].item() == 2 * i + 1


@pytest.mark.parametrize("kind", KINDS)
def test_other_values_cross_too(kind):
    values = ["text", b"bytes", None, {"a": (1, 2.5)}, np.arange(4), torch.ones(0), torch.ones(3, dtype=torch.bfloat16),
              np.asfortranarray(np.ones((200, 100)))]  # fmt: skip
    got = list(with_workers(Odd(values.__getitem__), 2, kind, batch_size=None, collate_fn=lambda x: x))
    assert got[:4] == values[:4]
    assert np.array_equal(got[4], values[4]) and np.array_equal(got[7], values[7])
    assert got[5].shape == (0,) and got[6].dtype is torch.bfloat16 and got[6].shape == (3,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_iterable_with_workers(kind, workers):
    loader = with_workers(Count(10), workers, kind, batch_size=2)
    for _ in range(2):
        batches = [b.tolist() for b in loader]
        assert sorted(i for b in batches for i in b) == list(range(10))
    if workers == 2:
        assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    dropped = [b.tolist() for b in with_workers(Count(9), workers, kind, batch_size=2, drop_last=True)]
    assert all(len(b) == 2 for b in dropped)
    assert sorted(with_workers(Count(5), workers, kind, batch_size=None)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_uneven_workers_of_an_iterable(kind):
    class Uneven(data.IterableDataset):
        def __iter__(self):
            return iter(range(data.get_worker_info().id * 5))

    assert sorted(int(b) for b in with_workers(Uneven(), 3, kind)) == sorted([*range(5), *range(10)])


@pytest.mark.parametrize("kind", KINDS)
def test_order_and_no_order(kind):
    def slow(i):
        time.sleep(0.3 if i == 0 else 0)
        return i

    ordered = [int(b) for b in with_workers(Odd(slow), 2, kind)]
    assert ordered == list(range(8))
    free = [int(b) for b in with_workers(Odd(slow), 2, kind, in_order=False)]
    assert sorted(free) == list(range(8)) and free[0] != 0


@pytest.mark.parametrize("kind", KINDS)
def test_workers_know_themselves(kind):
    def who(i):
        info = data.get_worker_info()
        return info.id, info.num_workers, info.seed - info.id, len(info.dataset)

    assert data.get_worker_info() is None
    rows = list(with_workers(Odd(who), 2, kind, batch_size=None, collate_fn=tuple))
    assert [row[0] for row in rows] == [0, 1] * 4
    assert {row[1:] for row in rows} == {(2, rows[0][2], 8)}
    assert data.get_worker_info() is None


def test_worker_info_is_fixed():
    from rushlight.utils.data._utils.worker import WorkerInfo

    info = WorkerInfo(0, 1, 2, "d")
    with pytest.raises(dataclasses.FrozenInstanceError, match="id"):
        info.id = 3
    assert (
        repr(info) == "WorkerInfo(id=0, num_workers=1, seed=2, dataset='d', rng=None, worker_method='multiprocessing')"
    )


@pytest.mark.skipif(not FORK, reason="no fork")
def test_workers_have_random_numbers_of_their_own():
    def draw(i):
        return random.random(), np.random.rand(), torch.rand(1).item()

    def numbers(seed):
        g = torch.Generator().manual_seed(seed)
        return list(with_workers(Odd(draw), 2, "process", batch_size=None, collate_fn=tuple, generator=g))

    first = numbers(0)
    assert first == numbers(0) != numbers(1)
    for column in zip(*first, strict=True):
        assert len(set(column)) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_init_function(kind):
    seen = []

    def init(worker):
        data.get_worker_info().dataset.n = 100 + worker
        seen.append(worker)

    class Own(data.Dataset):
        n = 0

        def __getitem__(self, i):
            return self.n

        def __len__(self):
            return 4

    got = [int(b) for b in with_workers(Own(), 2, kind, worker_init_fn=init)]
    assert got == [100, 101, 100, 101] if kind == "process" else set(got) <= {100, 101}
    assert sorted(seen) == ([] if kind == "process" else [0, 1])


class Special(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def failing(error):
    def function(i):
        if i == 2:
            raise error
        return i

    return Odd(function)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "kind_raised"),
    [(ValueError("bad"), ValueError), (KeyError("bad"), KeyError), (Special("bad", 2), RuntimeError),
     (StopIteration("bad"), RuntimeError), (type("Local", (Exception,), {})("bad"), Exception)],
)  # fmt: skip
def test_errors_of_workers(kind, error, kind_raised):
    loader = with_workers(failing(error), 2, kind)
    iterator = iter(loader)
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(kind_raised, match=r"(?s)DataLoader worker.*Original Traceback.*in function.*bad") as caught:
        next(iterator)
    assert "\\n" not in str(caught.value)
    assert int(next(iterator)) == 3  # the other batches still come
    del iterator, caught


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_init_functions(kind):
    def init(worker):
        raise ValueError(f"worker {worker} does not want to")

    with pytest.raises(ValueError, match="worker 0 does not want to"):
        list(with_workers(range(4), 2, kind, worker_init_fn=init))


@pytest.mark.skipif(not FORK, reason="no fork")
def test_what_cannot_be_sent():
    with pytest.raises(Exception, match=r"(?s)DataLoader worker process 0.*pickle"):
        list(with_workers(Odd(lambda i: lambda: i), 1, "process", collate_fn=lambda b: b))
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        list(with_workers(Odd(lambda i: x * 2), 1, "process"))


@pytest.mark.skipif(not FORK, reason="no fork")
@pytest.mark.parametrize(("code", "message"), [("exit", "exit code 3"), ("kill", "killed by signal 9.*memory")])
def test_workers_that_die(code, message):
    def die(i):
        if i == 2:
            os._exit(3) if code == "exit" else os.kill(os.getpid(), signal.SIGKILL)
        return i

    with pytest.raises(RuntimeError, match=r"exited unexpectedly.*" + message):
        list(with_workers(Odd(die), 2, "process"))


@pytest.mark.parametrize("kind", KINDS)
def test_timeout(kind):
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(with_workers(Odd(lambda i: time.sleep(0.7 if kind == "thread" else 20)), 1, kind, timeout=0.2))


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_early(kind):
    for batch in with_workers(Arrays(100), 2, kind, batch_size=2):
        assert batch[1].tolist() == [0, 1]
        break
    iterator = iter(with_workers(Arrays(100), 2, kind))
    next(iterator)
    del iterator


@pytest.mark.parametrize("kind", KINDS)
def test_several_at_once(kind):
    loader = with_workers(Arrays(9), 2, kind, batch_size=2)
    pairs = list(zip(loader, loader, strict=True))
    assert all(torch.equal(a[0], b[0]) for a, b in pairs)
    first, second = iter(loader), iter(loader)
    next(first)
    next(second)
    start = time.monotonic()
    del first
    assert time.monotonic() - start < 3
    assert len(list(second)) == 4
    del second


@pytest.mark.parametrize("kind", KINDS)
def test_persistent_workers(kind):
    def who(i):
        return (threading.get_ident() if kind == "thread" else os.getpid()), data.get_worker_info().seed

    loader = with_workers(Odd(who), 2, kind, batch_size=None, collate_fn=tuple, persistent_workers=True)
    passes = [list(loader) for _ in range(3)]
    assert len({row[0] for rows in passes for row in rows}) == 2
    assert len({row[1] for rows in passes for row in rows}) == 2
    iterator = iter(loader)
    next(iterator)
    assert [row[0] for row in loader] == [row[0] for row in passes[0]]  # begun again, what was ahead is dropped
    del iterator
    iterable = with_workers(Count(5), 2, kind, persistent_workers=True)
    assert sorted(int(b) for b in iterable) == sorted(int(b) for b in iterable) == [0, 1, 2, 3, 4]


def test_prefetch_factor_bounds_what_is_ahead():
    fetched = []
    loader = with_workers(Odd(lambda i: fetched.append(i) or i, 50), 1, "thread", prefetch_factor=3)
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.1)
    assert len(fetched) == 4
    del iterator


SCRIPT = """
import numpy as np
from rushlight.utils.data import DataLoader, Dataset, get_worker_info

class Rows(Dataset):
    def __getitem__(self, i):
        return np.full(10_000, i, np.float32), get_worker_info().id
    def __len__(self):
        return 4

if __name__ == "__main__":
    loader = DataLoader(Rows(), num_workers=2, multiprocessing_context="{method}")
    print([(int(a[0, -1]), int(i)) for a, i in loader])
"""


@pytest.mark.parametrize("method", [m for m in multiprocessing.get_all_start_methods() if m != "fork"])
def test_other_start_methods(method, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(method=method))
    done = run_script(tmp_path / "script.py")
    assert done.stdout.strip() == "[(0, 0), (1, 1), (2, 0), (3, 1)]", done.stderr


def run_script(path, **options):
    folder = os.path.dirname(os.path.dirname(torch.__file__))
    env = {**os.environ, "PYTHONPATH": folder}
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, env=env, **options)


ABANDONED = """
import os, signal, sys, time
from rushlight.utils.data import DataLoader, Dataset, get_worker_info

class Rows(Dataset):
    def __getitem__(self, i):
        return os.getpid()
    def __len__(self):
        return 1000

iterator = iter(DataLoader(Rows(), num_workers=2, multiprocessing_context="fork"))
print(int(next(iterator)), int(next(iterator)), flush=True)
{end}
"""


@pytest.mark.skipif(not FORK, reason="no fork")
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "1 / 0", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_no_process_outlives_the_program(end, tmp_path):
    (tmp_path / "script.py").write_text(ABANDONED.format(end=end))
    done = run_script(tmp_path / "script.py")
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(set(pids)) == 2
    assert "Exception ignored" not in done.stderr
    for _ in range(60):
        if not any(alive(pid) for pid in pids):
            break
        time.sleep(0.1)
    assert not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return True
