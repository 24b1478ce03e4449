"""`torch.utils.data`: what is refused and how, workers that know themselves, batches of what is no number."""

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def refused(call: Callable[[], Any]) -> Any:
    try:
        found = call()
    except Exception as error:
        return type(error).__name__
    return found.tolist() if hasattr(found, "tolist") else str(found)


BATCHES: list[Callable[[Any], Any]] = [
    lambda t: [1.0, None], lambda t: [1.0, "2"], lambda t: [1.0, 2], lambda t: [1.0, True], lambda t: [0.5, np.float32(1)],
    lambda t: [t.ones(2, 2).to_sparse()] * 2, lambda t: [np.array([1.0], ">f4")], lambda t: [1.0, 1j],
]  # fmt: skip


@pytest.mark.parametrize("batch", BATCHES)
def test_batches(batch: Callable[[Any], Any]) -> None:
    ours, theirs = (refused(lambda t=t: t.utils.data.default_collate(batch(t))) for t in (rushlight, torch))
    assert ours == theirs


REFUSED: list[Callable[[Any], Any]] = [
    lambda d: d.DataLoader([1], generator=3).__iter__(),
    lambda d: list(d.RandomSampler([1], generator=3)),
    lambda d: d.Sampler(None),
    lambda d: d.WeightedRandomSampler("a", 1),
    lambda d: d.random_split([1, 2], [1, 1], generator=3),
    lambda d: list(d.DataLoader([1], num_workers=1, prefetch_factor=0)),
    lambda d: d.DataLoader([1], num_workers=1, prefetch_factor=-1),
    lambda d: d.TensorDataset([1, 2]),
    lambda d: d.default_convert(np.array([1], ">f4")),
    lambda d: pickle.dumps(iter(d.DataLoader([1]))),
    lambda d: copy.copy(iter(d.DataLoader([1]))),
]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call: Callable[[Any], Any]) -> None:
    ours, theirs = (refused(lambda t=t: call(t.utils.data)) for t in (rushlight, torch))
    assert ours == theirs and ours.endswith("Error")


def test_a_dataset_of_a_number_has_no_length() -> None:
    for t in (rushlight, torch):
        with pytest.raises(IndexError):
            len(t.utils.data.TensorDataset(t.tensor(1.0)))


class Asks:
    """One element: what a worker is told that changes what it knows of itself, and what that is."""

    def __init__(self, t: Any):
        self.library = t.__name__  # workers that are not forked are sent it: a module cannot be

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        info = importlib.import_module(self.library).utils.data.get_worker_info()
        try:
            info.id = 3
        except Exception as error:
            return (
                type(error).__name__,
                sorted(n for n in dir(info) if not n.startswith("_")),
                info.rng,
                info.worker_method,
            )


def _of_worker(t: Any) -> Any:
    return list(t.utils.data.DataLoader(Asks(t), num_workers=1, collate_fn=list))


def test_what_a_worker_knows_of_itself_cannot_be_changed() -> None:
    assert _of_worker(rushlight) == _of_worker(torch)


def test_a_process_that_inherits_a_pass_lets_its_workers_be(capfd: Any) -> None:
    import os

    running = iter(rushlight.utils.data.DataLoader(range(4), num_workers=1))
    pid = os.fork()
    if not pid:
        running.__del__()
        os._exit(0)
    os.waitpid(pid, 0)
    assert len(list(running)) == 4
    assert "can only join" not in capfd.readouterr().err


NUMBERS: list[Callable[[Any], Any]] = [
    lambda t: t.tensor([1.0, None], dtype=t.float64), lambda t: t.tensor(None, dtype=t.float64), lambda t: t.tensor({1}, dtype=t.float64),
    lambda t: t.tensor([1, object()], dtype=t.float64), lambda t: t.tensor([1.0, None]), lambda t: t.tensor([2**63], dtype=t.int64),
    lambda t: t.tensor([True, None], dtype=t.bool),
]  # fmt: skip


@pytest.mark.parametrize("call", NUMBERS)
def test_what_is_no_number(call: Callable[[Any], Any]) -> None:
    ours, theirs = (refused(lambda t=t: call(t)) for t in (rushlight, torch))
    assert ours == theirs and ours.endswith("Error")
