"""Random operators: whether samples are drawn apart, together or not at all is the user's choice."""

from __future__ import annotations

import numpy as np

from rushlight.dispatch import families
from rushlight.ops.shape.reshape import broadcast
from rushlight.tensor import wrap
from rushlight.transforms.batching.given import Given, Results
from rushlight.transforms.batching.pointwise import pointwise


@families.parametric.batched
def parametric(c: Given) -> Results:
    """Draws whose parameters are tensors."""
    if c.level.randomness == "same":
        raise RuntimeError(
            f"Vmap does not currently support same randomness with a batched tensor input: {c.op.name}() draws by "
            "parameters that differ from sample to sample. Use randomness='different'"
        )
    return pointwise(c)


@families.drawn.batched
def drawn(c: Given) -> Results:
    """Draws in the shape of the input: for all samples, or for one and the same in all."""
    if c.level.randomness == "different":
        return c.run(c.values)
    one = c.run((wrap(np.empty(c.shapes[0], c.values[0]._array.dtype)),))
    return broadcast(one, (c.size, *c.shapes[0]))
