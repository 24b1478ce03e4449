"""Attention: its leading dimensions broadcast already."""

from __future__ import annotations

from rushlight.dispatch import families
from rushlight.transforms.batching.given import Given, Results, ranked
from rushlight.transforms.batching.loop import looped


@families.attention.batched
def attention(c: Given) -> Results:
    """Samples are one leading dimension more. Dropout that is the same for all samples needs one at a time."""
    if c["drop"] is not None and c.level.randomness == "same":
        return looped(c)
    rank = max(len(s) for s in c.shapes if s is not None)
    values = [ranked(c.full(i), c.shapes[i], rank) for i in range(3)]
    mask = c.values[3]
    return c.run((*values, ranked(mask, c.shapes[3], rank) if c.batched[3] else mask))
