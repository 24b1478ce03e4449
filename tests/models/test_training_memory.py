"""Training leaves nothing behind: memory falls by reference counts alone."""

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import rushlight as torch
from rushlight.cli.demo import training

STEPS = 100


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("way", ["adam", "fused"])
def test_live_bytes_stay_flat(way: str, collector_off: None) -> None:
    """100 steps of the demo's model without the cycle collector: no byte is left over from a step."""
    torch.manual_seed(0)
    model = torch.models.VisionTransformer(8, 4, num_layers=2, num_heads=8, hidden_dim=32, mlp_dim=64, num_classes=10)
    optimizer = training.WAYS[way](model)
    (images, labels), _ = training.split(0)
    x, y = torch.from_numpy(np.ascontiguousarray(images[:4])), torch.from_numpy(labels[:4])

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
        gc.collect()  # which empties Python's own free lists: they fill for a while
        arrays, everything = array_bytes(), traced_bytes()
        for _ in range(STEPS):
            last = step()
        assert array_bytes() == arrays
        # Cycles would show here.
        assert gc.collect() < STEPS, "each step leaves cycles for the collector"
        assert traced_bytes() - everything < 100 * STEPS
    finally:
        tracemalloc.stop()
    assert last < first


def array_bytes() -> int:
    """Bytes of the arrays that are alive, of those made since the trace began."""
    of_numpy = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([of_numpy]).traces)


def traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]
