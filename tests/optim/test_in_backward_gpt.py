"""A small GPT on the sources of the standard library: fused and unfused training give the same losses."""

from __future__ import annotations

import copy
import functools
import io
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.models.language import GPT
from rushlight.nn.utils import clip_grad_norm_
from rushlight.tensor import wrap

LENGTH, BATCH, MICRO = 32, 4, 4
OPTIM = torch.optim
MAKE = {
    "AdamW": lambda params: OPTIM.AdamW(params, lr=3e-3, weight_decay=0.1),
    "Adam": lambda params: OPTIM.Adam(params, lr=3e-3),
    "SGD": lambda params: OPTIM.SGD(params, lr=0.1, momentum=0.9),
}


@functools.cache
def text():
    """A megabyte or so of Python, as bytes."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    return np.frombuffer(b"".join(path.read_bytes() for path in sources), np.uint8)


def batches(count, seed=0):
    data, rng = text(), np.random.default_rng(seed)
    for _ in range(count):
        starts = rng.integers(0, len(data) - LENGTH - 1, BATCH)
        rows = np.stack([data[s : s + LENGTH + 1] for s in starts]).astype(np.int64)
        yield wrap(rows[:, :-1]), wrap(rows[:, 1:].copy())


def model(tied=True, dropout=0.0):
    torch.manual_seed(0)
    gpt = GPT(256, LENGTH, layers=2, width=32, heads=4, dropout=dropout)
    if not tied:
        gpt.head.weight = torch.nn.Parameter(gpt.head.weight.detach().clone())
    return gpt


def groups(gpt):
    """Decay for matrices alone, as is usual."""
    ps = list(gpt.parameters())
    return [{"params": [p for p in ps if p.ndim > 1]}, {"params": [p for p in ps if p.ndim < 2], "weight_decay": 0.0}]


class Training:
    """A model, an optimizer and perhaps a schedule, stepped after backward or inside it."""

    def __init__(self, fused, optimizer="AdamW", tied=True, dropout=0.0, schedule=False, clip=None, micro=1):
        self.fused, self.micro, self.clip = fused, micro, clip
        self.model = model(tied, dropout)
        self.optimizer = MAKE[optimizer](groups(self.model))
        self.schedule = None
        if schedule:
            warm = OPTIM.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=10)
            rest = OPTIM.lr_scheduler.CosineAnnealingLR(self.optimizer, 40)
            self.schedule = OPTIM.lr_scheduler.SequentialLR(self.optimizer, [warm, rest], [10])
        self.handle = OPTIM.in_backward(self.optimizer, accumulate=micro, clip_grad_norm=clip) if fused else None
        self.losses, self.norms = [], []

    def train(self, steps, seed=0):
        torch.manual_seed(seed)
        for i, (x, y) in enumerate(batches(steps * self.micro, seed)):
            loss = self.model(x, y)[1]
            (loss / self.micro).backward()
            self.losses.append(loss.item())
            if (i + 1) % self.micro == 0:
                self.step()
        return self

    def step(self):
        if not self.fused:
            if self.clip is not None:
                self.norms.append(clip_grad_norm_(self.model.parameters(), self.clip).item())
            self.optimizer.step()
            self.optimizer.zero_grad()
        else:
            assert all(p.grad is None for p in self.model.parameters())
            self.norms += [] if self.clip is None else [self.handle.grad_norm.item()]
        if self.schedule is not None:
            self.schedule.step()

    def saved(self):
        buffer = io.BytesIO()
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        state["schedule"] = None if self.schedule is None else self.schedule.state_dict()
        torch.save(state, buffer)
        return buffer.getvalue()

    def resumed(self, saved):
        state = torch.load(io.BytesIO(saved))
        self.model.load_state_dict(state["model"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.optimizer.load_state_dict(state["optimizer"])
        return self


CASES = {
    "nothing else": {"tied": False},
    "tied": {},
    "schedule": {"tied": False, "schedule": True},
    "clip": {"tied": False, "clip": 0.5},
    "micro-batches": {"tied": False, "micro": MICRO},
    "dropout": {"tied": False, "dropout": 0.1},
    "dropout and clip": {"dropout": 0.1, "clip": 0.5},
    "everything": {"schedule": True, "clip": 0.5, "micro": MICRO, "dropout": 0.1},
}


def close(a, b):
    return len(a) == len(b) and np.abs(np.array(a) - np.array(b)).max(initial=0.0) <= 1e-6


# Each case alone with AdamW; "everything", in which all meet, with the others too.
LONG = pytest.mark.slow
RUNS = [(case, "AdamW") for case in CASES] + [("everything", "SGD"), ("everything", "Adam")]
RUNS += [pytest.param(case, "SGD", marks=LONG) for case in CASES if case != "everything"]


@pytest.mark.parametrize(("case", "optimizer"), RUNS)
def test_losses_are_those_of_the_unfused_run(case, optimizer):
    """Over 50 steps, to 1e-6."""
    options = {**CASES[case], "optimizer": optimizer}
    plain = Training(False, **options).train(50)
    fused = Training(True, **options).train(50)
    assert plain.losses[-1] < plain.losses[0] - 0.5
    assert close(plain.losses, fused.losses) and close(plain.norms, fused.norms)
    if options.get("clip"):
        assert max(plain.norms) > options["clip"]


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
@pytest.mark.parametrize("case", ["tied", pytest.param("everything", marks=LONG)])
@pytest.mark.parametrize("ways", [(True, True), (True, False), (False, True)])
def test_a_saved_and_resumed_checkpoint(case, optimizer, ways):
    """Saved after 20 steps, and loaded into new objects, fused or not, for 30 more."""
    options = {**CASES[case], "optimizer": optimizer}
    plain = Training(False, **options).train(20).train(30, seed=1)
    first = Training(ways[0], **options).train(20)
    second = Training(ways[1], **options).resumed(first.saved()).train(30, seed=1)
    assert close(plain.losses, first.losses + second.losses)


class Checkpointed(torch.nn.Module):
    """A block that is computed again in backward."""

    def __init__(self, block, **options):
        super().__init__()
        self.block, self.options = block, options

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.block, x, **self.options)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("case", ["tied", "dropout and clip", "everything"])
@pytest.mark.parametrize("preserve", [True, False])
def test_with_checkpointing(case, reentrant, preserve):
    options = CASES[case]
    results = []
    for fused in (False, True):
        training = Training(fused, **options)
        for i, block in enumerate(list(training.model.blocks)):
            training.model.blocks[i] = Checkpointed(block, use_reentrant=reentrant, preserve_rng_state=preserve)
        training.train(10)
        results.append(training)
    assert close(results[0].losses, results[1].losses) and close(results[0].norms, results[1].norms)


def test_two_models_in_turn():
    """Backward of the one does not step the other."""
    a, b, c = Training(True), Training(True, "SGD"), Training(False, "SGD")
    for x, y in batches(4):
        a.model(x, y)[1].backward()
        before = copy.deepcopy(b.model.state_dict())
        assert all(np.array_equal(v._array, before[k]._array) for k, v in b.model.state_dict().items())
        b.model(x, y)[1].backward()
        c.model(x, y)[1].backward()
        c.step()
    assert a.handle.steps == b.handle.steps == 4
    assert np.array_equal(b.model.token.weight._array, c.model.token.weight._array)
