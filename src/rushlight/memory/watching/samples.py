"""What a running program has in memory at a moment, small enough to be sent several times a second."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from rushlight.kernels import allocator
from rushlight.memory.counting.account import process_memory
from rushlight.memory.recordings.recorder import Recorder, frames
from rushlight.memory.recordings.recording import CATEGORIES, PHASES, Frame
from rushlight.memory.recordings.replay import line_of

__all__ = ["Sample", "Sampler"]

MOST = 8  # modules and lines that are told
Sample = dict[str, Any]
"""Plain data, for JSON: `seconds` since the watch began, `now`, `peak` and `process` in bytes, `blocks`, `steps` of optimizers,
`phase`; `phases`: of each its seconds and the most bytes seen in it; `categories`, `modules`, `lines`: bytes by name, the
largest first."""


class Sampler:
    """Looks at what a recorder knows, from a thread of its own."""

    def __init__(self, recorder: Recorder):
        self.recorder = recorder
        self.begun = self.looked = time.perf_counter()
        self.phases: dict[str, list[float]] = {}
        self.lines: dict[int, str] = {-1: ""}

    def glance(self) -> None:
        """Note how much there is in which phase: between two samples, since a phase may be shorter than that."""
        now, most = time.perf_counter(), allocator.totals().bytes
        found = self.phases.setdefault(PHASES[self.recorder.phase], [0.0, 0])
        found[0] += now - self.looked
        found[1] = max(found[1], most)
        self.looked = now

    def sample(self) -> Sample:
        """What there is now."""
        self.glance()
        with allocator.aside():
            blocks = allocator.alive()  # before the names that they have
            totals = allocator.totals()
            return {
                "seconds": self.looked - self.begun, "now": totals.bytes, "peak": totals.peak, "process": process_memory()[0],
                "blocks": len(blocks), "steps": self.recorder.steps, "phase": PHASES[self.recorder.phase],
                "phases": {name: list(found) for name, found in self.phases.items()},
                "categories": self.by_category(blocks, totals.bytes),
                "modules": self.by_module(blocks), "lines": self.by_line(blocks),
            }  # fmt: skip

    def by_category(self, blocks: Any, total: int) -> dict[str, int]:
        """Bytes by category; what is not told of block by block is unknown."""
        sums = np.bincount(blocks["category"], blocks["size"], len(CATEGORIES)).astype(np.int64)
        sums[0] += max(total - int(sums.sum()), 0)
        return largest(dict(zip(CATEGORIES, sums.tolist(), strict=True)))

    def by_module(self, blocks: Any) -> dict[str, int]:
        """Bytes by the module that made them, or has the parameter that they are of."""
        labels = [module for _, module in list(self.recorder.labels)]
        named = np.array([bool(name) for name in labels] + [False])  # the last is -1: nobody said
        found: dict[str, int] = {}
        for label, size in summed(blocks[named[blocks["label"]]], "label").items():
            found[labels[label]] = found.get(labels[label], 0) + size
        for block in blocks[~named[blocks["label"]]]:
            home = self.recorder.homes.get(int(block["address"]), "")
            found[home] = found.get(home, 0) + int(block["size"])
        return largest(found, MOST)

    def by_line(self, blocks: object) -> dict[str, int]:
        """Bytes by the user's line."""
        found: dict[str, int] = {}
        for stack, size in summed(blocks, "stack").items():
            if stack not in self.lines:
                self.lines[stack] = own_line(frames(allocator.stack(stack)))
            line = self.lines[stack]
            found[line] = found.get(line, 0) + size
        return largest(found, MOST)


def own_line(stack: tuple[Frame, ...]) -> str:
    """The innermost line that is not of what is installed, else the innermost: what somebody looks for who watches."""
    own = tuple(
        frame for frame in stack if not frame.filename.startswith(INSTALLED) and "-packages/" not in frame.filename
    )
    return line_of(own or stack)


INSTALLED = os.path.dirname(os.__file__)


def summed(blocks: Any, column: str) -> dict[int, int]:
    """Bytes by the numbers of a column, without those that are not known."""
    numbers, places = np.unique(blocks[column], return_inverse=True)
    sums = np.bincount(places, blocks["size"], len(numbers)).astype(np.int64)
    return {n: size for n, size in zip(numbers.tolist(), sums.tolist(), strict=True) if n >= 0}


def largest(found: dict[str, int], most: int | None = None) -> dict[str, int]:
    """What has a name and bytes, the largest first."""
    named = [(name, size) for name, size in found.items() if name and size]
    return dict(sorted(named, key=lambda item: -item[1])[:most])
