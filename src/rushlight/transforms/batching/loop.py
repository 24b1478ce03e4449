"""The way of operators without a batching rule: sample after sample."""

from __future__ import annotations

from typing import Any

from rushlight.basics.caller import warn
from rushlight.levels.batch import dynamic
from rushlight.ops.shape.join import stack_op
from rushlight.ops.shape.reshape import select_op
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results

_WARNED: set[str] = set()


def loop(c: Given) -> Results:
    """Run the operator on each sample and stack what comes out."""
    once(c.op.name)
    return looped(c)


def once(name: str) -> None:
    """Warn, the first time, that an operator runs sample after sample."""
    if name not in _WARNED:
        _WARNED.add(name)
        warn(f"vmap: there is no batching rule for {name}, so it runs sample after sample, which is slower than an "
            "operator on all samples at once. This is said once for each operator.", UserWarning)  # fmt: skip


def looped(c: Given) -> Any:
    """`loop` without the warning."""
    if not c.size:
        raise RuntimeError(f"vmap: {c.op.name} has no batching rule and there are no samples to run it on")
    found = [c.run(sample(c, b)) for b in range(c.size)]
    if isinstance(found[0], (tuple, list)):
        return [stacked(c, column) for column in zip(*found, strict=True)]
    return stacked(c, found)


def sample(c: Given, b: int) -> list[Any]:
    """The inputs of sample `b`."""
    return [select_op(x, (b, ...)) if batched else x for x, batched in zip(c.values, c.batched, strict=True)]


def stacked(c: Given, results: list[Any] | tuple[Tensor, ...]) -> Results:
    """The results of all samples in one tensor."""
    shapes = {tuple(t.shape) for t in results}
    if len(shapes) > 1:
        dynamic(c.op.name)
    return stack_op(tuple(results), 0)
