"""What is saved for backward, kept elsewhere: peaks of one step with each store."""

import contextlib
import sys
import tempfile

import rushlight as torch
from rushlight import memory, stores

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
torch.manual_seed(0)
model = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(size, size), torch.nn.Tanh())])
x = torch.randn(4 * size, size)

with tempfile.TemporaryDirectory() as folder:
    ways = {
        "in memory": contextlib.nullcontext(),
        "on disk": stores.disk(folder, memory=8 * size * size * 4),
        "in bfloat16": stores.compress("bf16"),
    }
    for name, store in ways.items():
        model.zero_grad()
        memory.reset_peak()
        before = memory.current()
        with store:
            loss = model(x).square().mean()
        loss.backward()
        print(f"{name:<16}{(memory.peak() - before) / 1e6:8.1f} MB above the model")
        del loss
