"""One optimizer, fused into backward: each gradient is used and freed as soon as it is complete.

What is built around an optimizer goes on working: a schedule, clipping, accumulation, a checkpoint to resume from.
"""

import io
import sys

import rushlight as torch
from rushlight import memory, nn, optim

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512


def train(fused: bool, accumulate: int = 1, clip: float | None = None, stop: int = 0) -> tuple[list[float], int]:
    """The losses of six steps, and the peak above what was there before; `stop`: after so many it is saved and resumed."""
    torch.manual_seed(0)
    before = memory.current()
    memory.reset_peak()
    model, optimizer, schedule = make(fused, accumulate, clip)
    losses = []
    for step in range(6):
        if step == stop != 0:
            file = io.BytesIO()
            torch.save([part.state_dict() for part in (model, optimizer, schedule)], file)
            model, optimizer, schedule = make(fused, accumulate, clip)
            states = torch.load(io.BytesIO(file.getvalue()))
            for part, state in zip((model, optimizer, schedule), states, strict=True):
                part.load_state_dict(state)
        for _ in range(accumulate):
            loss = model(torch.randn(16, size)).square().mean() / accumulate
            loss.backward()
        if clip and not fused:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()  # fused, these two do nothing
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    return losses, memory.peak() - before


def make(fused: bool, accumulate: int, clip: float | None):
    """A model, its optimizer and a schedule."""
    model = nn.Sequential(*[nn.Linear(size, size) for _ in range(8)])
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
    if fused:
        optim.in_backward(optimizer, accumulate=accumulate, clip_grad_norm=clip)
    return model, optimizer, schedule


print(f"{'':<28}{'plain':>10}{'fused':>10}")
for name, options in {
    "with a schedule": {},
    "and clipping": {"clip": 0.01},
    "and accumulation over four": {"clip": 0.01, "accumulate": 4},
    "and resumed after three": {"clip": 0.01, "stop": 3},
}.items():
    (plain, most), (fused, least) = train(False, **options), train(True, **options)
    print(f"{name:<28}{most / 1e6:7.1f} MB{least / 1e6:7.1f} MB   the same losses: {plain == fused}")
