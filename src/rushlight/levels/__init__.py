"""Levels: active interpreters, innermost last in `state.modes.levels`, that operators defer to.

An operator asks each level, innermost first, whether it owns an input; the first that does runs the operator instead.
What it does with the parts it takes out of its inputs goes through operators again, and so to the levels around it.
"""

from __future__ import annotations

from typing import Any, Protocol


class Level(Protocol):
    """What an operator expects of a level.  flat: the inputs, a sequence among them unrolled; statics: the rest."""

    dry: bool = False  # whether it records what an ordinary run records

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input belongs to this level."""

    def lift(self, tensor: Any) -> bool:
        """Make a leaf that starts to require grad one of this level, and say whether that was done."""
        return False

    def apply(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op`."""

    def apply_inplace(self, op: Any, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run the in-place form of `op`, whose target is the first input."""
