"""One run of the demo, as a process: ``python -m rushlight.cli.demo.training WAY EPOCHS STEPS SEED``.

Prints a line of JSON per step, and one with the figures at the end.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from rushlight import datasets, memory, optim
from rushlight.cli.demo.memory import ResidentMemory
from rushlight.engine.modes import no_grad
from rushlight.models import VisionTransformer
from rushlight.nn import functional as F
from rushlight.ops import from_numpy, manual_seed
from rushlight.tensor import Tensor

HELD_OUT = 360
BATCH = 32
RATE = 3e-4
WARM_UP = 0.1  # of all steps
BUDGET = 100_000_000  # bytes: half of what plain training takes

Arrays = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


def split(seed: int) -> tuple[Arrays, Arrays]:
    """The digits as images (N, 3, 8, 8) of mean 0 and variance 1, with labels: for training, and held out."""
    images, labels = datasets.digits()
    pixels = images.astype(np.float32)
    pixels = (pixels - pixels.mean()) / pixels.std()
    colour = np.broadcast_to(pixels[:, None], (len(pixels), 3, 8, 8))
    order = np.random.default_rng(seed).permutation(len(labels))
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    return (colour[rest], labels[rest]), (colour[held], labels[held])


def model_for_digits() -> VisionTransformer:
    """A vision transformer on four patches of 4 x 4 pixels: three wide blocks, 9.5 million parameters."""
    return VisionTransformer(
        image_size=8, patch_size=4, num_layers=3, num_heads=8, hidden_dim=512, mlp_dim=2048, num_classes=10
    )


class Plain:
    """An optimizer over all parameters, stepped after backward; the next step drops the gradients, as most loops do."""

    within: Callable[[], AbstractContextManager[Any]] = staticmethod(nullcontext)  # what the training runs in

    def __init__(self, model: VisionTransformer) -> None:
        self.parts = [optim.Adam(model.parameters(), lr=RATE)]

    def before(self) -> None:
        """What the loop does first in a step."""
        self.parts[0].zero_grad()

    def after(self) -> None:
        """What the loop does after backward."""
        self.parts[0].step()


class Budgeted(Plain):
    """The same below BUDGET bytes of arrays: what is not needed at the moment waits on disk."""

    within = staticmethod(lambda: memory.budget(BUDGET))


class InBackward(Plain):
    """The same, each parameter stepped as soon as its gradient is complete."""

    def __init__(self, model: VisionTransformer) -> None:
        super().__init__(model)
        optim.in_backward(self.parts[0])


WAYS: dict[str, type[Plain]] = {"adam": Plain, "fused": InBackward, "budget": Budgeted}


class Run:
    """The training of one model in one way, with what it measures."""

    def __init__(self, way: str, epochs: int, steps: int, seed: int) -> None:
        self.training, self.held_out = split(seed)
        self.order = np.random.default_rng(seed + 1)
        self.epochs = epochs
        self.per_epoch = min(len(self.training[1]) // BATCH, steps)
        self.losses: list[float] = []
        self.times: list[float] = []
        self.gradients = 0
        self.marks: list[float] = []  # when the first pass and its evaluation began and ended
        self.counted = memory.is_counted()
        if self.counted:
            memory.reset_peak()
        self.memory = ResidentMemory()
        with self.memory, WAYS[way].within():
            manual_seed(seed)
            self.model = model_for_digits()
            self.optimizer = WAYS[way](self.model)
            for _ in range(epochs):
                self.mark()
                self.epoch()
                self.mark()
                self.accuracy = self.evaluate()
                self.mark()

    def epoch(self) -> None:
        """One pass over the training images, in a new order."""
        images, labels = self.training
        order = self.order.permutation(len(labels))
        for index in range(self.per_epoch):
            chosen = order[index * BATCH : (index + 1) * BATCH]
            start = time.perf_counter()
            self.set_rate()
            loss = self.step(from_numpy(images[chosen]), from_numpy(labels[chosen]))
            self.times.append(time.perf_counter() - start)
            self.losses.append(loss)
            self.report(loss)
            if index < self.per_epoch - 1:
                self.mark()

    def mark(self) -> None:
        """Remember when this was."""
        if len(self.marks) < 2 + self.per_epoch:
            self.marks.append(self.memory.elapsed())

    def set_rate(self) -> None:
        """Warm up, then fall to zero in a straight line."""
        done, steps = len(self.losses), self.epochs * self.per_epoch
        rate = RATE * min(1.0, (done + 1) / (WARM_UP * steps)) * (1 - done / steps)
        for part in self.optimizer.parts:
            for group in part.param_groups:
                group["lr"] = rate

    def step(self, images: Tensor, labels: Tensor) -> float:
        """One step on images (N, 3, 8, 8); returns its loss."""
        self.optimizer.before()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.gradients = sum(p.grad.nbytes for p in self.model.parameters() if p.grad is not None)
        self.optimizer.after()
        return float(loss)

    def report(self, loss: float) -> None:
        """Tell the parent process of a step."""
        steps = self.epochs * self.per_epoch
        print(json.dumps({"step": len(self.losses), "steps": steps, "loss": loss}), flush=True)

    def evaluate(self) -> float:
        """The share of held-out digits that the model names right, all of them in one batch."""
        images, labels = self.held_out
        with no_grad():
            chosen = self.model(from_numpy(images)).numpy().argmax(1)
        return float((chosen == labels).mean())

    def series(self) -> list[tuple[float, int]]:
        """The memory until the end of the first evaluation, over steps: built by 0, evaluated within three steps."""
        places = [-1.0, *range(self.per_epoch + 1), self.per_epoch + 3.0]
        inside = [sample for sample in self.memory.series if sample[0] <= self.marks[-1]]
        steps = np.interp([time for time, _ in inside], [0.0, *self.marks], places)
        return [(round(float(step), 3), size) for step, (_, size) in zip(steps, inside)]

    def figures(self) -> dict[str, Any]:
        """What the run measured, sizes in bytes."""
        states = [state for part in self.optimizer.parts for state in part.state.values()]
        return {
            "peak": self.memory.peak,
            "arrays": memory.peak() if self.counted else None,
            "parameters": sum(p.nbytes for p in self.model.parameters()),
            "gradients": self.gradients,
            "state": sum(v.nbytes for state in states for v in state.values() if isinstance(v, Tensor)),
            "seconds_per_step": float(np.median(self.times)),
            "accuracy": self.accuracy,
            "losses": self.losses,
            "steps": self.per_epoch,
            "series": self.series(),
        }


def main(way: str, *sizes: str) -> None:
    """Train and print."""
    epochs, steps, seed = map(int, sizes)
    print(json.dumps(Run(way, epochs, steps, seed).figures()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
