"""Products and decompositions of matrices."""

from __future__ import annotations

import math
from typing import Any

from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS
from rushlight.ops.shape.reshape import broadcast, permute_op, reshape_op
from rushlight.transforms.batching.given import Given, Results, ranked, reshaped
from rushlight.transforms.batching.loop import looped

# What the dimensions of each operand, and of the result, are to a contraction.
# Of products, by the numbers of dimensions of the operands.
LABELS = {(2, 2): ("mk", "kn", "mn"), (2, 1): ("mk", "k", "m"), (1, 1): ("k", "k", "")}


def contraction(
    c: Given, i: int, j: int, la: str | tuple[Any, ...], lb: str | tuple[Any, ...], lo: str | tuple[Any, ...]
) -> Any:
    """Inputs `i` and `j` contracted by labels, the samples being one more."""
    # Of samples within samples each has a label of its own, also where the operands alone have it and it is summed over.
    samples = ("samples", 1 + max((n[1] for n in (*la, *lb, *lo) if isinstance(n, tuple)), default=-1))
    la = (samples, *la) if c.batched[i] else tuple(la)
    lb = (samples, *lb) if c.batched[j] else tuple(lb)
    return c.run((c.values[i], c.values[j]), (la, lb, (samples, *lo)), OPS["einsum"])


@families.product.batched
def product(c: Given) -> Results:
    """The products that a contraction can stand for."""
    return contraction(c, 0, 1, *LABELS[len(c.shapes[0]), len(c.shapes[1])])


@families.outer.batched
def outer(c: Given) -> Results:
    """All products of the elements of two vectors."""
    a, b = c.full(0), c.full(1)
    return c.run((reshape_op(a, (*a.shape, 1)), reshape_op(b, (c.size, 1, b.shape[1]))), (), OPS["mul"])


@families.labelled.batched
def labelled(c: Given) -> Results:
    """A contraction with one label more."""
    return contraction(c, 0, 1, c["la"], c["lb"], c["lo"])


@families.stacks.batched
def stacks(c: Given) -> Results:
    """Products of stacks of matrices, which broadcast; a stack times one matrix is one product."""
    a, b = c.shapes
    if not c.batched[1] and len(b) == 2:
        rows = reshaped(c.values[0], (c.size * math.prod(a[:-1]), a[-1]))
        return reshaped(c.run((rows, c.values[1]), (), OPS["mm"]), (c.size, *a[:-1], b[-1]))
    rank = max(len(a), len(b))
    return c.run([ranked(x, s, rank) if batched else x
                  for x, s, batched in zip(c.values, c.shapes, c.batched, strict=True)])  # fmt: skip


@families.linear.batched
def linear(c: Given) -> Results:
    """input weight^T + bias."""
    if not c.batched[1] and not c.batched[2]:
        return c.run(c.values)
    x, w, bias = c.values
    if c.batched[1]:  # one product for each sample; rows of any number of dimensions are those of one matrix
        lead = c.shapes[0][:-1]
        x = reshaped(x, (*[c.size] * c.batched[0], math.prod(lead), c.shapes[0][-1]))
        found = c.run((x, permute_op(w, (0, 2, 1))), (), OPS["bmm"])
        found = reshaped(found, (c.size, *lead, c.shapes[1][0]))
    else:
        found = c.run((x, w, None))
    if bias is None:
        return found
    bias = ranked(bias, c.shapes[2], len(c.shapes[0])) if c.batched[2] else bias
    return c.run((found, bias), (), OPS["add"])


@families.added.batched
def added(c: Given) -> Any:
    """beta input + alpha mat1 mat2."""
    a, b = c.shapes[1:]
    lead = tuple(range(len(a) - 2))
    if c["alpha"] == 0:  # nothing is multiplied
        return looped(c)
    if (c.batched[1] or c.batched[2]) and len(b) == len(a):
        found = contraction(c, 1, 2, (*lead, *"mk"), (*lead, *"kn"), (*lead, *"mn"))
    elif c.batched[1] or c.batched[2]:
        return looped(c)
    else:
        found = c.run(c.values[1:], (), OPS["bmm"])
    found = found if c["alpha"] == 1 else c.run((found, c["alpha"]), (), OPS["mul"])
    if c["beta"] != 0:
        scaled = c.values[0] if c["beta"] == 1 else c.run((c.values[0], c["beta"]), (), OPS["mul"])
        scaled = ranked(scaled, c.shapes[0], len(a)) if c.batched[0] else scaled
        found = c.run((scaled, found), (), OPS["add"])
    return (
        found
        if c.batched[1] or c.batched[2] or (c.batched[0] and c["beta"] != 0)
        else broadcast(found, (c.size, *found.shape))
    )


@families.trilinear.batched
def trilinear(c: Given) -> Results:
    """input1^T weight input2 by rows: two contractions."""
    middle = contraction(c, 0, 2, "ni", "oij", "noj") if c.batched[0] or c.batched[2] else None
    samples = ("samples", 0)
    if middle is None:
        middle = c.run((c.values[0], c.values[2]), (tuple("ni"), tuple("oij"), tuple("noj")), OPS["einsum"])
        la: tuple[Any, ...] = tuple("noj")
    else:
        la = (samples, *"noj")
    lb = (samples, *"nj") if c.batched[1] else tuple("nj")
    return c.run((middle, c.values[1]), (la, lb, (samples, *"no")), OPS["einsum"])


@families.leading.batched
def leading(c: Given) -> Results:
    """Operators on the last two dimensions, over any before them, which of several matrices broadcast."""
    rank = max(map(len, c.shapes))
    return c.run([ranked(c.full(i), s, rank) for i, s in enumerate(c.shapes)])


@families.with_pivots.batched
def with_pivots(c: Given) -> Results:
    """A factorisation, its pivots, which have a dimension less, and a right side: leading dimensions broadcast."""
    rank = max(len(c.shapes[0]), len(c.shapes[2]))
    return c.run([ranked(c.full(i), s, rank - (i == 1)) for i, s in enumerate(c.shapes)])


@families.on_the_diagonal.batched
def on_the_diagonal(c: Given) -> Results:
    """Matrices on a diagonal: each padded to the width of all, one below another."""
    width, left, rows = sum(s[1] for s in c.shapes), 0, []
    for i, shape in enumerate(c.shapes):
        pads = ((0, 0), (0, 0), (left, width - left - shape[1]))
        rows.append(c.run((c.full(i),), (pads, 0), OPS["pad"]))
        left += shape[1]
    return c.run(rows, (1,), OPS["cat"])


@families.distances.batched
def distances(c: Given) -> Results:
    """Distances of rows, over leading dimensions that broadcast."""
    rank = max(map(len, c.shapes))
    values = [ranked(c.full(i), s, rank) for i, s in enumerate(c.shapes)]
    lead = [max(n, m) if n and m else 0 for n, m in zip(values[0].shape[:-2], values[1].shape[:-2], strict=True)]
    return c.run([broadcast(x, (*lead, *x.shape[-2:])) for x in values])
