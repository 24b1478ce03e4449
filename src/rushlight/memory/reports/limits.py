"""Bytes of one piece of code, with the lines that had them: what tests with a limit on memory say."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rushlight.memory.counting.account import current, peak, reset_peak
from rushlight.memory.counting.units import share, size
from rushlight.memory.recordings import recorder
from rushlight.memory.recordings.recording import CATEGORIES, Recording
from rushlight.memory.recordings.replay import categories_at, lives, near, phases, settled

__all__ = ["Measured", "measuring"]

LINES = 5  # that are told


@dataclass
class Measured:
    """What a piece of code had in memory above what there was when it began.

    peak: the most bytes at once. lines: of these, (bytes, "file:line in function"), the largest first. categories: of these.
    """

    peak: int = 0
    lines: list[tuple[int, str]] = field(default_factory=list)
    categories: dict[str, int] = field(default_factory=dict)
    recording: Recording | None = None

    def over(self, limit: int, what: str) -> str:
        """What to say where the peak is above a limit: by how much, where, and what would help."""
        text = [f"{what}: peak {size(self.peak)}, {size(self.peak - limit)} above the limit of {size(limit)} (bytes of arrays above "
                "those at the beginning of the test)"]  # fmt: skip
        if self.lines:
            text.append("At the peak:")
            text += [f"  {size(n):>9}  {share(n, self.peak):>5}  {line}" for n, line in self.lines[:LINES]]
            text.append(
                "  by kind: " + ", ".join(f"{name.replace('_', ' ')} {size(n)}" for name, n in self.categories.items())
            )
        else:
            text.append("Where it was is not known: the test records memory itself (memory.record_history).")
        text.append(
            "What to do: "
            + "; ".join([*self.advice(), "free or shrink what these lines make, or raise the limit"])
            + "."
        )
        return "\n".join(text)

    def advice(self) -> list[str]:
        """The two pieces of advice that save most."""
        from rushlight.memory.advice.advisor import advise

        if self.recording is None or not phases(self.recording):
            return []  # which is for training
        return [f"{a.title} ({a.gain})" for a in advise(self.recording)[:2]]


@contextmanager
def measuring() -> Iterator[Measured]:
    """Count a piece of code, and record it unless somebody records already, or it does so itself.

    Raises RuntimeError where memory cannot be counted.
    """
    found = Measured()
    gc.collect()  # what earlier code left in cycles would go at any moment, and make room for what is counted
    own = None
    if not recorder.is_recording():
        recorder.record_history()
        own = recorder._active
    reset_peak()
    before = current()
    try:
        yield found
    finally:
        found.peak = max(peak() - before, 0)
        if own is not None and recorder._active is own:
            recorder.record_history(None)
            tell(found, own.recording())


def tell(found: Measured, recording: Recording) -> None:
    """Find where the peak was."""
    most, moment = recording.peak()
    found.peak = max(found.peak, most - recording.initial_bytes())
    found.recording = recording
    birth, death = lives(recording)
    alive = (birth >= 0) & (birth <= moment) & (death > moment)
    category = categories_at(settled(recording), moment)
    sums, kinds = Counter[str](), Counter[str]()
    for block in alive.nonzero()[0].tolist():
        sums[where(recording, block)] += int(recording.size[block])
        kinds[CATEGORIES[category[block]]] += int(recording.size[block])
    found.lines = [(n, line) for line, n in sums.most_common()]
    found.categories = dict(kinds.most_common())


def where(recording: Recording, block: int) -> str:
    """The line that made a block: the innermost below the working directory, else the innermost."""
    stack = recording.stacks[recording.stack[block]] if recording.stack[block] >= 0 else ()
    if not stack:
        return "an unrecorded line"
    here = os.getcwd() + os.sep
    mine = (frame for frame in stack if frame.filename.startswith(here) and "site-packages" not in frame.filename)
    frame = next(mine, stack[0])
    return f"{near(frame.filename)}:{frame.line} in {frame.name}"
