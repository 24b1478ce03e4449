"""What every use has: weights and data that do not depend on who draws random numbers, and a way to report numbers."""

from __future__ import annotations

import json
import zlib

import numpy as np
import torch

torch.set_num_threads(1)
torch.manual_seed(0)


def weights(model: torch.nn.Module, scale: float = 0.1) -> torch.nn.Module:
    """Fill parameters with numbers that depend on their names alone; those of norms stay around one."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            fresh = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * scale
            p.copy_(torch.tensor(fresh + (1.0 if p.dim() == 1 and "weight" in name else 0.0)).to(p.dtype))
    return model


def data(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers.  float32"""
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape)).float()


def labels(count: int, classes: int, seed: int = 0) -> torch.Tensor:
    """Numbers of classes.  int64"""
    return torch.tensor(np.random.default_rng(seed).integers(0, classes, count))


def report(numbers: list[float]) -> None:
    """Print numbers as the last line, for the gauge."""
    print(json.dumps([float(x) for x in numbers]))


def train(model: torch.nn.Module, loss_of, steps: int = 5, lr: float = 0.05) -> list[float]:
    """Losses of a few steps of SGD with momentum.  loss_of: the loss, given the model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
