"""What was measured of a statement, and what can be said of the times."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.backends import blas

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_UNITS = (("ns", "nanosecond", 1e-9), ("us", "microsecond", 1e-6), ("ms", "millisecond", 1e-3), ("s", "second", 1))
_FIGURES = 4  # that a time is ever said to have
_LEAST_INTERVAL = 25e-9  # seconds by which any time may be off: the clock is no better
_CONFIDENCE = 1.645  # standard errors that nine of ten lie within
_SPREAD, _LARGE_SPREAD = 0.1, 0.25  # of the quarters around the median, beside it, from which on there are warnings


def select_unit(t: float) -> tuple[str, float]:
    """The unit that a time is best told in, and its seconds.  ("us", 1e-06) for 2e-5.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    found = [unit for unit in _UNITS if t >= unit[2]] or [("s", "", 1) if t < _UNITS[0][2] else _UNITS[0]]
    return found[-1][0], found[-1][2]


def unit_to_english(u: str) -> str:
    """The name of a unit."""
    return next(name for short, name, _ in _UNITS if short == u)


def trim_sigfig(x: float, n: int) -> float:
    """A number with `n` significant figures.

    >>> trim_sigfig(123.456, 2)
    120.0
    """
    if x == 0:
        return 0.0
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order of their first places."""
    return list(dict.fromkeys(elements))


def _set_threads(n: int) -> None:
    kernels.set_num_threads(n)
    blas.set_num_threads(n)


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Let operators use that many threads within a block."""
    former = kernels.get_num_threads()
    _set_threads(n)
    try:
        yield
    finally:
        _set_threads(former)


def _lines(text: str) -> str:
    return "\n" + textwrap.indent(text, "  ") if "\n" in text else " " + text


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured: the statement, what goes before it, and how tables call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{_lines(self.stmt)}" if "\n" in self.stmt else self.stmt

    def setup_str(self) -> str:
        """What goes before, as text; "" for nothing."""
        return "" if self.setup in ("", "pass") else f"setup:{_lines(self.setup)}"

    def summarize(self) -> str:
        """Title and what goes before."""
        sections = [self.title, self.description or "", self.setup_str()]
        several = any("\n" in section for section in sections)
        return ("\n\n" if several else "\n").join(section for section in sections if section)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement.  number_per_run: how often it ran in each of `raw_times`, in seconds; task_spec: what it was."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in {field.name for field in dataclasses.fields(TaskSpec)}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.task_spec, name)

    @property
    def title(self) -> str:
        """As of the task."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What the row of a table is called."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @property
    def times(self) -> list[float]:
        """Seconds for one time."""
        return [t / self.number_per_run for t in self.raw_times]

    @cached_property
    def _quarters(self) -> tuple[float, float, float]:
        low, middle, high = np.percentile(self.times or [math.nan], [25, 50, 75])
        return float(low), float(middle), float(high)

    @property
    def median(self) -> float:
        """The time in the middle."""
        return float(np.median(self.times or [math.nan]))

    @property
    def mean(self) -> float:
        """The mean time."""
        return float(np.mean(self.times or [math.nan]))

    @property
    def iqr(self) -> float:
        """How far the quarters around the median reach."""
        return self._quarters[2] - self._quarters[0]

    @property
    def significant_figures(self) -> int:
        """How many figures of the time are worth reading, by the error of the mean of the middle half."""
        low, middle, high = self._quarters
        inner = [t for t in self.times if low <= t <= high] or self.times
        error = max(_CONFIDENCE * float(np.std(inner)) / math.sqrt(len(inner)), _LEAST_INTERVAL)
        return max(1, min(_FIGURES, math.floor(math.log10(middle / error))))

    @property
    def has_warnings(self) -> bool:
        """Whether the times lie far apart."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _SPREAD) -> bool:
        """Whether the quarters around the median are closer than this part of it."""
        return self.iqr / self.median < threshold

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        several = len(self.raw_times) > 1
        low, middle, high = (t / scale for t in self._quarters)
        text = [super().__repr__().replace("rushlight", "torch", 1), self.task_spec.summarize()]
        text += [""] if "\n\n" in text[-1] else []
        if several:
            text.append(f"  Median: {middle:.2f} {unit}")
            if len(self.raw_times) > 2:
                text.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        else:
            text.append(f"  {middle:.2f} {unit}")
        counted = f"{len(self.raw_times)} measurement{'s' if several else ''}, {self.number_per_run} runs "
        threads = f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}"
        return "\n".join([*text, f"  {counted}{'per measurement' if several else ''}, {threads}", *self._warning()])

    def _warning(self) -> list[str]:
        spread = self.iqr / self.median
        if spread < _SPREAD:
            return []
        what = (
            "suggests significant environmental influence."
            if spread >= _LARGE_SPREAD
            else "could indicate system fluctuation."
        )
        return [
            f"  WARNING: Interquartile range is {spread * 100:.1f}% of the median measurement.",
            f"           This {what}",
        ]

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with all times of it."""
        found: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(number_per_run=1, raw_times=times, task_spec=task) for task, times in found.items()]
