"""What training needs, from shapes: the model is never built, and nothing is computed."""

import sys

import rushlight as torch
from rushlight import memory

width = int(sys.argv[1]) if len(sys.argv) > 1 else 4096


def build() -> torch.nn.Module:
    """A large model."""
    return torch.nn.Sequential(
        *[layer for _ in range(24) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())]
    )


found = memory.estimate(build, (64, width), torch.optim.Adam)
print(found.table())
print("largest batch within twice that:", found.largest_batch(2 * found.peak))
