"""Activations computed again instead of kept: of every block, of every second, of a fourth at a time; the same gradients."""

import sys
import time

import rushlight as torch
from rushlight import memory, nn, stores
from rushlight.utils.checkpoint import checkpoint, checkpoint_sequential

size = int(sys.argv[1]) if len(sys.argv) > 1 else 256
torch.manual_seed(0)
blocks = nn.Sequential(*[
    nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * size, size), nn.Tanh())
    for _ in range(8)
])  # fmt: skip
x = torch.randn(4 * size, size, requires_grad=True)


def each(every: int):
    """The model with every so many-th block checkpointed."""

    def forward(h):
        for i, block in enumerate(blocks):
            h = checkpoint(block, h, use_reentrant=False) if i % every == 0 else block(h)
        return h

    return forward


ways = {
    "everything kept": blocks,
    "every block": each(1),
    "every second block": each(2),
    "four segments": lambda h: checkpoint_sequential(blocks, 4, h, use_reentrant=False),
    "stores.recompute()": nn.Sequential(*[stores.recompute()(block) for block in blocks]),
}
reference = None
print(f"{'':<22}{'kept':>10}{'peak':>10}{'seconds':>9}   gradients")
for name, model in ways.items():
    blocks.zero_grad()
    x.grad = None
    torch.manual_seed(1)  # of dropout
    before, start = memory.current(), time.perf_counter()
    memory.reset_peak()
    loss = model(x).square().mean()
    kept = memory.current() - before
    loss.backward()
    seconds, peak = time.perf_counter() - start, memory.peak() - before
    reference = x.grad.clone() if reference is None else reference
    same = "the same" if torch.equal(x.grad, reference) else "differ"
    print(f"{name:<22}{kept / 1e6:7.1f} MB{peak / 1e6:7.1f} MB{seconds:9.3f}   {same}")
    del loss
