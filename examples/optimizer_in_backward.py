"""One optimizer, fused into backward: each gradient is used and freed as soon as it is complete."""

import sys

import rushlight as torch
from rushlight import memory, optim

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512


def train(fused: bool) -> tuple[list[float], int]:
    """The losses of three steps, and the peak above what was there before."""
    torch.manual_seed(0)
    before = memory.current()
    memory.reset_peak()
    model = torch.nn.Sequential(*[torch.nn.Linear(size, size) for _ in range(8)])
    optimizer = torch.optim.AdamW(model.parameters())
    if fused:
        optim.in_backward(optimizer)
    losses = []
    for _ in range(3):
        loss = model(torch.randn(16, size)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, memory.peak() - before


(plain, most), (fused, least) = train(False), train(True)
print(
    f"{most / 1e6:.1f} MB, and with the optimizer in backward {least / 1e6:.1f} MB; the same losses: {plain == fused}"
)
