"""One call of an operator inside vmap, as its batching rule sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rushlight.ops.shape.reshape import broadcast, permute_op, reshape_op
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op
    from rushlight.transforms.batched import BatchedLevel

Results: TypeAlias = Tensor | tuple[Tensor, ...]  # of a rule: the result, or several, with the samples in front


class Given:
    """The inputs of a call with the samples of all in dimension 0.

    values: for each input, the tensor of all samples with these in front where `batched` says so, else what was given;
    shapes: of one sample, None for what is no tensor. A rule returns the result, or several, with the samples in front.
    """

    __slots__ = ("batched", "level", "op", "shapes", "size", "statics", "values")

    def __init__(self, level: BatchedLevel, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]):
        self.level, self.op, self.statics, self.size = level, op, statics, level.size
        self.values: list[Any] = []
        self.batched: list[bool] = []
        self.shapes: list[Any] = []
        for x in flat:
            part = level.part(x)
            if part is None:
                self.values.append(wrap(x) if isinstance(x, np.ndarray) else x)  # arrays are what formulas make
                self.shapes.append(getattr(x, "shape", None) if not isinstance(x, Tensor) else x._array.shape)
            else:
                self.values.append(in_front(part.tensor, part.dim))
                self.shapes.append(part.shape)
            self.batched.append(part is not None and part.dim is not None)

    def __getitem__(self, name: str) -> Any:
        """The static argument of this name."""
        return self.statics[self.op.static_names.index(name)]

    def has(self, name: str) -> bool:
        """Whether the operator has a static argument of this name."""
        return name in self.op.static_names

    def changed(self, **values: object) -> tuple[Any, ...]:
        """The static arguments with some of them replaced."""
        return tuple(values.get(n, v) for n, v in zip(self.op.static_names, self.statics, strict=True))

    def full(self, i: int) -> Any:
        """Input `i` with a dimension of samples in front, made by expanding where it has none."""
        x = self.values[i]
        if self.batched[i] or self.shapes[i] is None:
            return x
        return broadcast(x, (self.size, *self.shapes[i]))

    def every(self) -> list[Any]:
        """All inputs with the samples in front."""
        return [self.full(i) for i in range(len(self.values))]

    def run(
        self, values: list[Any] | tuple[Any, ...], statics: tuple[Any, ...] | None = None, op: Op | None = None
    ) -> Any:
        """The operator (or another) on other inputs."""
        op = self.op if op is None else op
        flat = tuple(values)
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        return op(*inputs, *(self.statics if statics is None else statics))


def in_front(tensor: Tensor, dim: int | None) -> Any:
    """A tensor with dimension `dim` moved to the front."""
    if not dim:
        return tensor
    return permute_op(tensor, (dim, *(i for i in range(tensor._array.ndim) if i != dim)))


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor or array in another shape; itself where it has that."""
    shape = tuple(shape)
    return x if tuple(x.shape) == shape else reshape_op(x, shape)


def ranked(x: Tensor, shape: tuple[int, ...], ndim: int) -> Tensor:
    """A tensor with samples of `shape` in front, these with dimensions of size 1 put before up to `ndim`."""
    return reshaped(x, (x.shape[0], *[1] * (ndim - len(shape)), *shape))


def each(results: Tensor | tuple[Tensor, ...], change: Callable[..., Any]) -> Any:
    """A result, or each of several, changed."""
    if isinstance(results, (tuple, list)):
        return [change(t) for t in results]
    return change(results)
