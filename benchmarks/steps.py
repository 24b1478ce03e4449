"""Training steps of several models, against PyTorch in one run, from equal weights on equal data.

    python benchmarks/steps.py [--only gpt gpt_autocast resnet vit lstm gru] [--threads N] [--repeats N]

Needs torch in the environment.  Both libraries build the model from the same source; the losses are compared
step by step.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pairs

import rushlight  # before torch: it chooses the BLAS core type

import torch

from twin import copy_weights, load

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "src" / "rushlight" / "models"
# Of the first loss: the libraries round differently, and training amplifies it.  2e-3 where nothing is said.
AGREE = {"gpt_autocast": 2e-2}


class Task:
    """A model with its optimizer and data, on one library."""

    def __init__(self, lib: ModuleType, model: Any, optimizer: Any, loss: Callable[[Any], Any]) -> None:
        self.lib, self.model, self.optimizer, self.loss = lib, model, optimizer, loss
        self.losses: list[float] = []

    def step(self) -> None:
        """One training step."""
        loss = self.loss(self.model)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def gpt(lib: ModuleType) -> Task:
    """A 6-layer GPT, d 384, 256 tokens, batch 8, AdamW."""
    model = load(MODELS / "language.py", lib).GPT(vocabulary=8192, length=256, layers=6, width=384, heads=6)
    data = lib.from_numpy(np.random.default_rng(0).integers(0, 8192, (8, 257)))
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-4)
    return Task(lib, model, optimizer, lambda model: model(data[:, :-1], data[:, 1:])[1])


def gpt_autocast(lib: ModuleType) -> Task:
    """The same GPT under autocast in bfloat16."""
    task = gpt(lib)
    whole = task.loss

    def loss(model: Any) -> Any:
        with lib.autocast("cpu", dtype=lib.bfloat16):
            return whole(model)

    task.loss = loss
    return task


def resnet(lib: ModuleType) -> Task:
    """ResNet-18, images of 64 x 64, batch 8, SGD with momentum."""
    module = load(MODELS / "resnet.py", lib)
    model = module.ResNet(module.BasicBlock, (2, 2, 2, 2), num_classes=100)
    optimizer = lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return Task(lib, model, optimizer, classify(lib, (8, 3, 64, 64), 100))


def vit(lib: ModuleType) -> Task:
    """ViT-B/16, images of 224 x 224, batch 2, Adam."""
    module = load(MODELS / "vision_transformer.py", lib)
    model = module.VisionTransformer(
        224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072, num_classes=100
    )
    return Task(lib, model, lib.optim.Adam(model.parameters(), lr=1e-4), classify(lib, (2, 3, 224, 224), 100))


def lstm(lib: ModuleType) -> Task:
    """A 2-layer LSTM of width 256 over 64 steps, batch 16, Adam."""
    model = load(HERE / "recurrent_model.py", lib).Reader()
    return Task(lib, model, lib.optim.Adam(model.parameters(), lr=1e-3), classify(lib, (16, 64, 128), 10))


def gru(lib: ModuleType) -> Task:
    """A GRU of width 256 over 64 steps, batch 16, Adam."""
    model = lib.nn.GRU(128, 256)
    x = lib.from_numpy(np.random.default_rng(0).standard_normal((64, 16, 128), dtype=np.float32))
    return Task(lib, model, lib.optim.Adam(model.parameters(), lr=1e-3), lambda model: model(x)[0].square().mean())


def classify(lib: ModuleType, shape: tuple[int, ...], classes: int) -> Callable[[Any], Any]:
    """The cross-entropy of a model on one fixed batch."""
    rng = np.random.default_rng(0)
    x = lib.from_numpy(rng.standard_normal(shape, dtype=np.float32))
    y = lib.from_numpy(rng.integers(0, classes, shape[0]))
    return lambda model: lib.nn.functional.cross_entropy(model(x), y)


# name: (task, limit of the ratio, measurements)
CASES: dict[str, tuple[Callable[[ModuleType], Task], float | None, int]] = {
    "gpt": (gpt, 1.0, 15),
    "gpt_autocast": (gpt_autocast, None, 15),
    "resnet": (resnet, None, 30),
    "vit": (vit, None, 9),
    "lstm": (lstm, None, 30),
    "gru": (gru, None, 30),
}


def measure(name: str, repeats: int | None) -> pairs.Pair:
    """Train a model on both libraries in turns."""
    make, limit, usual = CASES[name]
    torch.manual_seed(0)
    theirs = make(torch)
    ours = make(rushlight)
    copy_weights(theirs.model, ours.model, rushlight)
    times = pairs.alternate(ours.step, theirs.step, repeats=repeats or usual)
    apart = max(abs(a - b) for a, b in zip(ours.losses, theirs.losses)) / theirs.losses[0]
    if apart > AGREE.get(name, 2e-3):
        raise SystemExit(f"{name}: the losses differ by {apart:.1e}:\n{ours.losses}\n{theirs.losses}")
    note = f"losses {theirs.losses[0]:.3f} to {theirs.losses[-1]:.3f}, apart by {apart:.0e}"
    return pairs.Pair((make.__doc__ or name).rstrip("."), *times, limit=limit, note=note)


def main() -> int:
    options = pairs.arguments(__doc__.splitlines()[0], list(CASES))
    threads = pairs.same_threads(options.threads)
    rows = [measure(name, options.repeats) for name in options.only or CASES]
    return pairs.report(rows, threads, options.json)


if __name__ == "__main__":
    sys.exit(main())
