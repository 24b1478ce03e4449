"""What a workload is, and helpers that most of them use."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Step = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """make(library) -> step. same: within which part the first steps' losses of both libraries agree; None: not compared."""

    name: str
    family: str
    make: Callable[[ModuleType], Step]
    same: float | None
    threads: int | None

    @property
    def title(self) -> str:
        return (self.make.__doc__ or self.name).strip().rstrip(".")


WORKLOADS: dict[str, Workload] = {}


def workload(same: float | None = 2e-3, threads: int | None = None) -> Callable[[Callable[[Any], Step]], Any]:
    """Declare a workload under the name of its function, in the family of its module."""

    def declare(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
        family = make.__module__.rpartition(".")[2]
        WORKLOADS[make.__name__] = Workload(make.__name__, family, make, same, threads)
        return make

    return declare


def normal(torch: ModuleType, *shape: int, seed: int = 0) -> Any:
    """Standard normal numbers, the same in both libraries.  float32"""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def integers(torch: ModuleType, below: int, *shape: int, seed: int = 0) -> Any:
    """Whole numbers from 0 to below - 1.  int64"""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))


def equal(model: Any) -> Any:
    """The model, with weights that are the same in both libraries: by each one's place and shape."""
    for i, p in enumerate(model.parameters()):
        rng = np.random.default_rng(i)
        bound = (3 / max(1, p[0].numel() if p.dim() > 1 else 1)) ** 0.5
        drawn = rng.uniform(-bound, bound, tuple(p.shape)) if p.dim() > 1 else (p.detach().numpy() == 1) * 1.0
        p.data = p.data.new_tensor(drawn.astype(np.float32))
    return model


def training(torch: ModuleType, model: Any, loss: Callable[[], Any], optimizer: Any = None) -> Step:
    """A step of training: forward, backward, optimizer; SGD with momentum unless another is given."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> Any:
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
        return found

    return step


def classifying(torch: ModuleType, model: Any, x: Any, classes: int, optimizer: Any = None) -> Step:
    """A step of training on one batch by cross-entropy; x (N, ...), logits (N, classes)."""
    equal(model)
    y = integers(torch, classes, x.shape[0], seed=1)
    return training(
        torch, model, lambda: torch.nn.functional.cross_entropy(model(x), y), optimizer and optimizer(model)
    )


def shipped(torch: ModuleType, name: str) -> ModuleType:
    """A model that rushlight ships, built on either library."""
    from pathlib import Path

    from twin import load

    return load(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "models" / f"{name}.py", torch)
