"""Training leaves nothing behind: memory falls by reference counts alone."""

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import rushlight as torch
from rushlight.cli.demo import training

STEPS = 300


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("way", training.WAYS)
def test_live_bytes_stay_flat(way: str, collector_off: None) -> None:
    """300 steps of the demo's model without the cycle collector: no byte is left over from a step."""
    torch.manual_seed(0)
    model = torch.models.VisionTransformer(8, 4, num_layers=3, num_heads=8, hidden_dim=64, mlp_dim=256, num_classes=10)
    optimizer = training.WAYS[way](model)
    (images, labels), _ = training.split(0)
    x, y = torch.from_numpy(np.ascontiguousarray(images[:8])), torch.from_numpy(labels[:8])

    def step() -> float:
        optimizer.before()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.after()
        return loss.item()

    first = step()
    for _ in range(10):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        step()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(STEPS):
            last = step()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 100 * STEPS, f"{(after - before) / STEPS:.0f} bytes a step"
    assert gc.collect() < STEPS, "each step leaves cycles for the collector"
    assert last < first
