"""Recordings of memory: which blocks lived when, made by whom, as columns of numbers.

A block is one allocation: it is born once and dies at most once.  Letters: E events, B blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rushlight.kernels import allocator

CATEGORIES = (
    "unknown",
    "parameter",
    "gradient",
    "optimizer_state",
    "activation",
    "input",
    "temporary",
    "autograd_detail",
)
"""What a block is for; the number of a category is its place here."""

PHASES = ("", "forward", "backward", "optimizer")
"""What the program was doing; the number of a phase is its place here."""

ALLOC, FREE, CATEGORY, PHASE, MARK = range(5)
SEVERAL = "several backward calls"  # one after another, that make a step
UNUSED = (
    "gradients that no step uses"  # of parameters that an optimizer has: those of a discriminator by a generator's loss
)
"""Actions: a block is born; it dies; its category changes; a phase begins (value: its number); the user's mark (value:
its place in `marks`)."""


class Frame(NamedTuple):
    """A line of the user's program."""

    filename: str
    line: int
    name: str  # of the function


@dataclass
class Recording:
    """What was recorded.  Everything that is not recorded is -1 (stack, operator, module) or 0 (category, phase).

    Events, in the order of time: `time` (E) in microseconds since 1970, int64; `action` (E) uint8; `block` (E) int64, the
    block's number, -1 for phases and marks; `value` (E) int64: of ALLOC and CATEGORY the category, of PHASE the phase, of
    MARK the mark.

    Blocks: `address`, `size` (B) int64 bytes; `stack`, `operator`, `module` (B) int32 places in the tables. The first
    `initial` blocks were alive when the recording began: no event tells of their birth; `initial_category` (initial).

    Tables: `stacks`, tuples of frames, innermost first; `operators` and `modules`, names ("conv2d", "layers.0.attention");
    `marks`.  `treatments`: what is done with gradients between backward and step, as arguments of `optim.in_backward`,
    "GradScaler", `SEVERAL` or `UNUSED`.  `idle`: modules of those that ran which never ran themselves, as lists of others do
    not.  `models`: those that were called from outside of any.  `cut`: blocks of which operators were given parts, as of data
    sets.
    """

    time: Any
    action: Any
    block: Any
    value: Any
    address: Any
    size: Any
    stack: Any
    operator: Any
    module: Any
    initial: int = 0
    initial_category: Any = None
    stacks: list[tuple[Frame, ...]] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    treatments: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    dropped: int = 0  # events at the beginning that the bounded ring had no room for
    device: str = "cpu"
    shown: ClassVar[Callable[[Recording], str]]  # its report in a notebook: the package says it, which knows of reports

    def __repr__(self) -> str:
        return f"<Recording of {len(self.time):,} events and {len(self.size):,} blocks on {self.device}>"

    def deltas(self) -> np.ndarray:
        """Bytes that each event adds or takes.  (E) int64"""
        sign = np.where(self.action == ALLOC, 1, np.where(self.action == FREE, -1, 0))
        found = np.zeros(len(self.time), np.int64)
        moved = sign != 0
        found[moved] = sign[moved] * self.size[self.block[moved]]
        return found

    def _repr_html_(self) -> str:
        return type(self).shown(self)

    def initial_bytes(self) -> int:
        """Bytes alive when the recording began."""
        return int(self.size[: self.initial].sum())

    def live(self) -> np.ndarray:
        """Bytes alive after each event.  (E) int64"""
        return self.initial_bytes() + np.cumsum(self.deltas())

    @allocator.aside()
    def peak(self) -> tuple[int, int]:
        """The most bytes alive at once, and the event after which they were (-1: at the beginning)."""
        live = self.live()
        if not len(live) or live.max() <= self.initial_bytes():
            return self.initial_bytes(), -1
        at = int(live.argmax())
        return int(live[at]), at
