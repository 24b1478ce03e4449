"""Steps that are really taken: in a child process, so that nothing here changes, and what is too large ends there."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.tree import tree_flatten
from rushlight.engine.modes import enable_grad
from rushlight.kernels import allocator
from rushlight.memory.budgets.budget import BudgetError
from rushlight.memory.counting import account
from rushlight.memory.estimates.rehearsal import scalar_of
from rushlight.memory.estimates.rehearsals import Setup
from rushlight.memory.planning.ways import Way, within
from rushlight.nn.modules.module import Module
from rushlight.optim.fusing import InBackward
from rushlight.optim.optimizer import Optimizer
from rushlight.storage import root_of
from rushlight.tensor import Tensor, wrap

STEPS = 3  # the first warms up
LONGEST = 600.0  # seconds for a trial


class Trial(NamedTuple):
    """What steps took.  peak: bytes with parameters and inputs, 0 where they are not counted. seconds: of forward, backward and
    the optimizer's step."""

    peak: int
    seconds: tuple[float, float, float]


class TrialFailed(Exception):
    """A trial did not end as steps end: what was the matter.  least: of a budget that was too small, what would do."""

    least = 0


def possible() -> bool:
    """Whether this system lets a process try something in a copy of itself."""
    return hasattr(os, "fork")


def tried(setup: Setup, way: Way, seconds: float = LONGEST) -> Trial:
    """Take steps one way, in a child process.  Raises TrialFailed where that fails, or takes too long."""
    found = in_child(lambda: steps(setup, way), seconds)
    return Trial(found[0], (found[1][0], found[1][1], found[1][2]))


def in_child(call: Callable[[], Any], seconds: float) -> Any:
    """What `call` gives, as JSON can say it, in a forked process that prints nothing."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are not in the child: it makes its own
        child = os.fork()
    if child == 0:
        os.close(read)
        _answer(call, write)
    os.close(write)
    try:
        text = _all_of(read, monotonic() + seconds)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(read)
        _, status = os.waitpid(child, 0)
    return _judged(text, status)


def _judged(text: str, status: int) -> object:
    """What a child said, which may be that it failed, or nothing."""
    if not text:
        number = os.waitstatus_to_exitcode(status)
        why = "the system ended it: there is not enough memory" if number == -9 else f"it ended with status {number}"
        raise TrialFailed(why)
    found = json.loads(text)
    if "error" in found:
        raise _failure(
            **found
        )  # a name for it here would be a cycle of it and this frame, by which the model would stay
    return found["found"]


def _failure(error: str, least: int) -> TrialFailed:
    made = TrialFailed(error)
    made.least = least
    return made


def _answer(call: Callable[[], Any], write: int) -> None:
    """Call, write what that gives, and end this process, or one that it forked."""
    process = os.getpid()
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        sys.stdout = sys.stderr = open(os.devnull, "w")
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            told = {"found": call()}
        except BaseException as error:
            kind = "" if isinstance(error, TrialFailed) else f"{type(error).__name__}: "
            told = {"error": f"{kind}{error}".splitlines()[0], "least": getattr(error, "least", 0)}
        data = json.dumps(told).encode() if os.getpid() == process else b""  # one process answers
        while data:
            data = data[os.write(write, data) :]
    finally:
        os._exit(0)


def _all_of(read: int, until: float) -> str:
    """What a pipe gives until its other end is closed.  Raises TrialFailed when time is up."""
    parts: list[bytes] = []
    while True:
        left = until - monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            raise TrialFailed("it took too long")
        part = os.read(read, 1 << 16)
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


# Steps -----------------------------------------------------------------------------------------------------------


def steps(setup: Setup, way: Way, count: int = STEPS) -> Trial:
    """Take steps one way, here: what the quickest but the first took."""
    model = setup.model if isinstance(setup.model, Module) else setup.model()
    optimizer, sample = made(setup.optimizer, model), real(setup)
    for p in model.parameters():
        p.grad = None
    base = account.current() - held(model, sample, optimizer) if account.is_counted() else 0
    if way.limit:
        way = within(way.limit + base, way.rehearse is not None, way.spill)
    times = []
    if account.is_counted():
        account.reset_peak()
    with beside(base), enable_grad(), way.apply(model, optimizer):
        for _ in range(count):
            times.append(one_step(model, sample, optimizer, setup.loss))
        peak = allocator.totals().peak - base if account.is_counted() else 0
    return Trial(peak, min(times[1:], key=sum))


@contextmanager
def beside(base: int) -> Iterator[None]:
    """What a budget says would do is told without so many bytes, which others hold: a way's limit is without them, too."""
    try:
        yield
    except BudgetError as error:
        error.least = max(error.least - base, 0)
        raise


def one_step(model: Module, sample: Any, optimizer: Optimizer, loss: Any) -> tuple[float, float, float]:
    """One step: seconds of forward, backward and the optimizer."""
    (model if optimizer is None else optimizer).zero_grad()
    times = [perf_counter()]
    out = (
        model(**sample)
        if isinstance(sample, dict)
        else model(*sample)
        if isinstance(sample, (tuple, list))
        else model(sample)
    )
    value = scalar_of(out, sample, loss)
    del out
    times.append(perf_counter())
    value.backward()
    del value
    times.append(perf_counter())
    if optimizer is not None:
        optimizer.step()
    times.append(perf_counter())
    a, b, c, d = times
    return b - a, c - b, d - c


def made(optimizer: Any, model: Module) -> Any:
    """The optimizer: itself, that of a handle, or what a function makes of the parameters."""
    if isinstance(optimizer, InBackward):
        return optimizer.optimizer
    return optimizer if optimizer is None or isinstance(optimizer, Optimizer) else optimizer(model.parameters())


def real(setup: Setup) -> Any:
    """The sample, in memory of its own where it was given as a shape."""
    return wrap(np.zeros(setup.sample._held.shape, np.float32)) if setup.by_shape else setup.sample


def held(model: Module, sample: object, optimizer: Optimizer) -> int:
    """Bytes of what a step begins with, which estimates count."""
    state = [] if optimizer is None else tree_flatten([*optimizer.state.values()])[0]
    tensors = (*model.parameters(), *model.buffers(), *tree_flatten(sample)[0], *state)
    roots = {id(root): root for root in (root_of(t._held) for t in tensors if isinstance(t, Tensor))}
    return sum(root.nbytes for root in roots.values())
