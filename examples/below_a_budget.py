"""Train with and without a bound on memory: the same losses, to the bit."""

import sys

import rushlight as torch
from rushlight import memory

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512


def train() -> list[float]:
    """The losses of three steps."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(size, size), torch.nn.Tanh())])
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(2 * size, size)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


before = memory.current()
memory.reset_peak()
plain = train()
needed = memory.peak() - before
with memory.budget(memory.current() + needed * 6 // 10) as budget:
    bounded = train()
print(budget.report())
print("the same losses:", plain == bounded)
