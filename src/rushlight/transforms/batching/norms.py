"""Normalisations."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.tensor import Tensor
from rushlight.transforms.batching.channels import as_channels, from_channels
from rushlight.transforms.batching.given import Given, Results, each, ranked, reshaped
from rushlight.transforms.batching.windows import folded, unfolded


def scaled(c: Given, found: Tensor, at: int) -> Tensor:
    """A normalised result times the weight and plus the bias, whose sizes are of the dimensions from `at` on."""
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    rank = len(results[0].shape) - 1
    for i, op in zip(range(1, len(c.values)), ("mul", "add"), strict=False):
        if c.values[i] is not None:
            shape = (*c.shapes[i], *[1] * (rank - at - len(c.shapes[i])))
            x = reshaped(c.values[i], (c.size, *shape) if c.batched[i] else shape)
            x = ranked(x, shape, rank) if c.batched[i] else x
            results[0] = c.run((results[0], x), (), OPS[op])
    return results if isinstance(found, (tuple, list)) else results[0]


def plain(c: Given) -> bool:
    """Whether weight and bias are the same for all samples."""
    return not any(c.batched[1:])


@families.by_rows.batched
def by_rows(c: Given) -> Results:
    """Normalisation over the last dimensions."""
    rest = len(c.values) - 1
    if plain(c):
        return c.run(c.values)
    found = c.run((c.full(0), *[None] * rest))
    return scaled(c, found, len(c.shapes[0]) - c["k"])


@families.by_groups.batched
def by_groups(c: Given) -> Results:
    """Normalisation over groups of channels."""
    rest = c.values[1:] if plain(c) else (None, None)
    found = each(c.run((folded(c, c.full(0), 0), *rest)), lambda t: unfolded(c, t))
    return found if plain(c) else scaled(c, found, 1)


def channels(c: Given, i: int) -> Any:
    """Input `i`, one number for each channel, for the channels of all samples."""
    return None if c.values[i] is None else folded(c, c.full(i), i)


@families.by_channels.batched
def by_channels(c: Given) -> list[Any]:
    """Normalisation by channel with statistics of the images of one sample."""
    found = c.run((as_channels(c, 0), *(channels(c, i) for i in range(1, len(c.values)))))
    out, *numbers = found
    return [from_channels(c, out), *(unfolded(c, t) for t in numbers)]


@families.by_known_channels.batched
def by_known_channels(c: Given) -> Results:
    """Normalisation by channel with statistics that are given."""
    if plain(c):
        return unfolded(c, c.run((folded(c, c.values[0], 0), *c.values[1:])))
    return from_channels(c, c.run((as_channels(c, 0), *(channels(c, i) for i in range(1, len(c.values))))))
