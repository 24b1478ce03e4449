"""Record a few training steps, write the report as a page, and print the advice."""

import sys

import rushlight as torch
from rushlight import memory

size, path = int(sys.argv[1]) if len(sys.argv) > 1 else 512, sys.argv[2] if len(sys.argv) > 2 else "report.html"

memory.record_history()
model = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(size, size), torch.nn.GELU())])
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    memory.mark(f"step {step}")
    loss = model(torch.randn(4 * size, size)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
memory.record_history(None)

recording = memory.recording()
for advice in memory.advise(recording):
    print(advice, "\n")
print("peak", recording.peak()[0], "bytes; open", memory.report(recording, path))
