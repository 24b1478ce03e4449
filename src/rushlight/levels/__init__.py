"""Levels: active interpreters, innermost last in `state.modes.levels`, that operators defer to.

An operator asks each level, innermost first, whether it owns an input; the first that does runs the operator instead.
What it does with the parts it takes out of its inputs goes through operators again, and so to the levels around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rushlight.basics.state import modes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.levels.batch import BatchedArray
    from rushlight.tensor import Tensor


class Level(Protocol):
    """What an operator expects of a level.  flat: the inputs, a sequence among them unrolled; statics: the rest."""

    dry: bool = False  # whether it records what an ordinary run records

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input belongs to this level."""

    def idle(self) -> bool:
        """Whether nothing belongs to it so far."""
        return False

    def lift(self, tensor: Any) -> bool:
        """Make a leaf that starts to require grad one of this level, and say whether that was done."""
        return False

    def apply(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op`."""

    def apply_inplace(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run the in-place form of `op`, whose target is the first input."""


def owned(tensors: tuple[Any, ...]) -> bool:
    """Whether any of these inputs belongs to a level of this thread: kernels of arrays are not to be given them.

    That a level is active says nothing of tensors that are none of its own, and an estimate takes what kernels would.
    """
    return any(level.owns(tensors) for level in modes.levels if not level.dry)


class SampleLevel(Level, Protocol):
    """A level that runs the samples of a batch together: see `transforms.batched`."""

    size: int
    randomness: str

    def part(self, x: object) -> BatchedArray | None:
        """The array of all samples of an input that belongs to this level, None of others."""

    def batched(self, tensor: Tensor, dim: int | None = 0) -> Tensor:
        """A tensor whose dimension `dim` counts samples, as one of this level."""

    def whole(self, x: Tensor) -> tuple[Tensor, int | None]:
        """The tensor of all samples, and the dimension that counts them; None where they share it."""

    def apart(self, x: Tensor) -> Tensor:
        """A tensor with a copy for each sample, where they share it."""

    def formula(self, fn: Callable[..., Any], op: Any, args: list[Any]) -> Any:
        """Run a formula, for each sample where it looks at values."""

    def by_samples(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
        """Run `fn(*args)` for each sample."""


class Rehearsal(Level, Protocol):
    """A level that makes shapes and no values: see `memory.estimates`."""

    def standing(self, shape: Any, dtype: object) -> Any:
        """An array of a shape and dtype without numbers."""

    def run(self, keep: bool) -> Any:
        """A backward run of shapes alone."""

    def again(self, op: Any, arrays: list[Any], statics: tuple[Any, ...]) -> Any:
        """What an operator would give again."""
