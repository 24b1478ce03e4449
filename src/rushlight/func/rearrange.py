"""`rearrange`: dimensions by their names, in the notation of einops (Rogozhnikov 2022)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import chain

from rushlight.dispatch import functions as ops
from rushlight.tensor import Tensor

Group = tuple[str, ...]
REST = "..."
ALONE = ("", REST)  # what is not in brackets stays as many dimensions
NAME = r"(?:[^\W\d]\w*|1|\.\.\.)"
SIDE = re.compile(rf"\s*(?:(?:\(\s*(?:{NAME}(?=[\s)])\s*)*\)|{NAME}(?=[\s(]|$))\s*)*")


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Dimensions permuted, split and joined as the pattern names them.

    tensor: one, or several of one shape, whose number is then the first dimension.  pattern: names of dimensions on either side
    of "->"; those in brackets are one dimension, "..." is any number of them, "1" or "()" one of size 1.  axes_lengths: sizes
    of names in brackets, all but one of each.  Raises ValueError for a pattern that does not fit.

    >>> import rushlight as torch
    >>> torch.func.rearrange(torch.zeros(2, 4, 6, 3), "b (h k) w c -> b c h (k w)", k=2).shape
    torch.Size([2, 3, 2, 12])
    """
    x = tensor if isinstance(tensor, Tensor) else ops.stack(tuple(tensor))
    left, right = _sides(pattern, x.ndim)
    sizes = _sizes(pattern, left, tuple(x.shape), axes_lengths)
    before, after = [*chain(*left)], [*chain(*right)]
    if len({*before}) < len(before) or sorted(before) != sorted(after):
        raise _wrong(pattern, f"each name stands once on either side, got {before} and {after}")
    x = x.reshape([sizes[name] for name in before]).permute([before.index(name) for name in after])
    return x.reshape([math.prod(sizes[name] for name in group) for group in right])


def _wrong(pattern: str, why: str) -> ValueError:
    return ValueError(f"rearrange: {why}, in the pattern {pattern!r}")


def _sides(pattern: str, ndim: int) -> tuple[list[Group], list[Group]]:
    """The groups of names on either side, with names for the dimensions that "..." stands for."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise _wrong(pattern, "expected two sides with '->' between them")
    left, right = (_groups(pattern, side) for side in sides)
    rest = [f"{REST}{i}" for i in range(ndim - len(left) + 1)] if ALONE in left else []
    if len(left) - (ALONE in left) + len(rest) != ndim:
        raise _wrong(pattern, f"expected {len(left)} dimensions, got {ndim}")
    return _spelled(left, rest), _spelled(right, rest)


def _groups(pattern: str, side: str) -> list[Group]:
    """The names of one side: a tuple for each dimension."""
    if not SIDE.fullmatch(side):
        raise _wrong(pattern, f"expected names, '1', '...' and brackets without others inside, got {side.strip()!r}")
    found = re.findall(r"\(([^()]*)\)|([^\s()]+)", side)
    groups = [
        ALONE if alone == REST else tuple(name for name in (inside or alone).split() if name != "1")
        for inside, alone in found
    ]
    if sum(group.count(REST) for group in groups) > 1:
        raise _wrong(pattern, "expected '...' once at most")
    return groups


def _spelled(groups: list[Group], rest: list[str]) -> list[Group]:
    """Groups with the names of the rest in place of "..."."""
    apart = chain(*([(name,) for name in rest] if group == ALONE else [group] for group in groups))
    return [tuple(chain(*(rest if name == REST else [name] for name in group))) for group in apart]


def _sizes(pattern: str, groups: list[Group], shape: tuple[int, ...], given: dict[str, int]) -> dict[str, int]:
    """The size of each name."""
    unknown = [name for name in given if not any(name in group for group in groups)]
    if unknown:
        raise _wrong(pattern, f"the lengths of {unknown} are given, which it does not name")
    sizes = dict(given)
    for group, size in zip(groups, shape, strict=True):
        open_names, known = [n for n in group if n not in sizes], math.prod(sizes[n] for n in group if n in sizes)
        if len(open_names) > 1:
            raise _wrong(pattern, f"the lengths of all but one of {list(group)} have to be given")
        if open_names and known and size % known == 0:
            sizes[open_names[0]] = size // known
        elif open_names or known != size:
            raise _wrong(pattern, f"{list(group) or 1} does not fit a dimension of size {size}")
    return sizes
