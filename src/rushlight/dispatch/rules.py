"""Rules of operators: functions whose parameter names say what they ask of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rushlight.dispatch.plan import arguments
from rushlight.kernels.gather import PIECE

if TYPE_CHECKING:
    import numpy as np

    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op


class Making(Protocol):
    """What a rule for the shapes of gradients may ask of the run that it is asked by."""

    def array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Sequence[int] | None = None) -> Array:
        """A new array without numbers.  order: its dimensions by decreasing stride; C order without."""

    def gradient(self, position: int, order: Sequence[int] | None = None) -> Array:
        """A gradient of the shape of the input at `position`."""

    def work(self, nbytes: int) -> None:
        """Note bytes that are needed for a moment."""

    def blocks(self, fn: Callable[..., Any], like: Array, *args: object) -> None:
        """Note what `keeping.blocks.in_blocks(fn, like, *args)` takes beside its result."""


class Rule:
    """A function of some of an operator's inputs and statics.  Raises TypeError if it asks for anything else."""

    __slots__ = ("fn", "op", "requests")

    def __init__(self, op: Op, fn: Callable[..., Any]):
        self.op, self.fn, self.requests = op, fn, arguments(fn)
        for request in self.requests:
            if request not in op.names:
                raise TypeError(
                    f"operator {op.name}: a rule asks for {request!r}, which is none of its parameters {op.names}"
                )

    def __call__(self, arrays: Sequence[Any], statics: Sequence[Any]) -> Any:
        """What the rule says of a call: `arrays` are flat."""
        op, given = self.op, tuple(arrays)
        if op.sequence is not None:
            given = (*given[: op.sequence], given[op.sequence :])
        values = dict(zip(op.names, (*given, *statics), strict=True))
        return self.fn(*(values[name] for name in self.requests))


def laid_out(input: Array) -> int:
    """The bytes of the copy that a kernel takes of an array whose elements do not lie side by side: those of a sum's gradient, say."""
    return 0 if input.flags.c_contiguous else int(input.nbytes)


def in_pieces(input: Array) -> int:
    """The same where pieces are copied one after the other, which those of 16 bits are not: they are added up in float32."""
    whole = laid_out(input)
    return whole if input.itemsize == 2 else min(whole, PIECE * input.itemsize)


def rows_or_columns(g: Array) -> bool:
    """Whether the elements of all rows or of all columns lie side by side: a gradient that products read where it is."""
    return 0 not in g.strides


def of_laid_out(*positions: int) -> Callable[..., Any]:
    """A rule for the shapes of gradients of inputs, those at `positions`, of a kernel that takes its own gradient laid out."""

    def one(g: Array, make: Making) -> Array:
        return several(g, (True,), make)[0]

    def several(g: Array, needs: Sequence[bool], make: Making) -> list[Any]:
        copy = make.array(g.shape, g.dtype) if laid_out(g) else None
        made = [make.gradient(i) if need else None for i, need in zip(positions, needs, strict=True)]
        del copy
        return made

    return one if len(positions) == 1 else several
