"""Two Transformer blocks over sequences of several lengths, padded and nested: peak of arrays and seconds, forward and backward.

    python benchmarks/nested.py

Makes the table of docs/nested.md anew.
"""

from __future__ import annotations

import statistics
import time

import rushlight as torch
from rushlight import memory, nn
from rushlight.nn import functional as F

LENGTHS = [8 + 504 * i // 31 for i in range(32)]
WIDTH, HEADS, REPEATS = 128, 4, 5


class Block(nn.Module):
    """Attention and a layer of four times the width, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def measured(
    model: nn.ModuleList, x: torch.Tensor, mask: torch.Tensor | None, kept: torch.Tensor | None
) -> tuple[float, int, float]:
    """The loss, the peak of arrays above what lay there before, in bytes, and the median of seconds."""
    seconds = []
    for _ in range(REPEATS):
        model.zero_grad()
        before = memory.memory_allocated()
        memory.reset_peak()
        start = time.perf_counter()
        y = x
        for block in model:
            y = block(y, mask)
        squares = (y * y).values() if kept is None else (y * y)[kept]
        loss = squares.sum()
        loss.backward()
        seconds.append(time.perf_counter() - start)
        peak = memory.peak() - before
    return loss.item(), peak, statistics.median(seconds)


def main() -> None:
    """Print the table."""
    torch.manual_seed(0)
    model, parts = nn.ModuleList([Block(), Block()]), [torch.randn(n, WIDTH) for n in LENGTHS]
    padded = nn.utils.rnn.pad_sequence(parts, batch_first=True)
    kept = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    rows = [
        ("padded, with a mask", padded.shape[0] * padded.shape[1], *measured(model, padded, kept[:, None, None], kept))
    ]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    rows.append(("nested", sum(LENGTHS), *measured(model, nested, None, None)))
    print("| | positions | peak | time |\n| --- | ---: | ---: | ---: |")
    for name, count, _, peak, seconds in rows:
        print(f"| {name} | {count:,} | {peak / 1e6:.0f} MB | {seconds:.2f} s |")
    print("losses:", *(f"{row[2]:.6g}" for row in rows))


if __name__ == "__main__":
    main()
