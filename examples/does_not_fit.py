"""My model does not fit: one training in eight ways, with the bytes and the seconds of each."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import memory, nn, optim, stores

size = int(sys.argv[1]) if len(sys.argv) > 1 else 384


def train(
    optimizer: Callable[..., Any] = optim.Adam,
    clear: bool = False,
    fused: bool = False,
    recompute: bool = False,
    parts: int = 1,
    store: Callable[[], Any] = contextlib.nullcontext,
    budget: int | None = None,
) -> tuple[int, float, float]:
    """Peak bytes of three steps above what was there before, seconds of a step, and the last loss."""
    torch.manual_seed(0)
    before = memory.current()
    memory.reset_peak()
    model = nn.Sequential(
        *[nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size)) for _ in range(6)]
    )
    if recompute:
        model = nn.Sequential(*[stores.recompute()(block) for block in model])
    made = optimizer(model.parameters(), lr=1e-4)
    if fused:
        optim.in_backward(made)
    start = time.perf_counter()
    with memory.budget(before + budget) if budget else contextlib.nullcontext():
        for _ in range(3):
            batch = torch.randn(2 * size, size)
            for number, part in enumerate(batch.chunk(parts)):
                with store():
                    loss = (model(part) - part).square().mean() / parts
                if not clear and number == 0:
                    made.zero_grad()  # as many loops have it: gradients of the last step live through the forward
                loss.backward()
            made.step()
            if clear:
                made.zero_grad()
    return memory.peak() - before, (time.perf_counter() - start) / 3, loss.item() * parts


plain, seconds, _ = train()
ways = {
    "as it is": {},
    "gradients cleared after the step": {"clear": True},
    "optimizer in backward": {"fused": True},
    "its state in 8 bits": {"fused": True, "optimizer": optim.Adam8bit},
    "and blocks computed again": {"fused": True, "optimizer": optim.Adam8bit, "recompute": True},
    "activations in bfloat16": {"clear": True, "store": lambda: stores.compress("bf16")},
    "the batch in four parts": {"clear": True, "parts": 4},
    "a budget of half, as it is": {"budget": plain // 2},
}
print(f"{'':<34}{'peak':>9}{'step':>9}{'loss':>10}")
for name, way in ways.items():
    peak, took, loss = train(**way)
    bar = "█" * round(24 * peak / plain)
    print(f"{name:<34}{peak / 1e6:6.1f} MB{took / seconds:8.2f}x{loss:10.5f}  {bar}")
