"""Tables of measurements: a table for each label, a column for each description, a row for each kind and number of threads."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.utils.benchmark.measurements import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST, _END = (
    "\033[92m\033[1m",
    "\033[34m\033[1m",
    "\033[2m\033[91m",
    "\033[31m\033[1m",
    "\033[0m\033[0m",
)
_GAP = "  |  "
Row = tuple[int, str | None, str]  # threads, environment, name


class Colorize(enum.Enum):
    """What a time is compared with when it is coloured: nothing, its column, its row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements.

    >>> from rushlight.utils.benchmark import TaskSpec
    >>> times = [Measurement(1, [t * 1e-6] * 5, TaskSpec("f(x)", "", label="f", description=d)) for d, t in (("old", 3), ("new", 2))]
    >>> print(str(Compare(times)).splitlines()[1])
                  |  old  |  new
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self._figures, self._colors, self._warnings = False, Colorize.NONE, False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Take more measurements in.  Raises ValueError for what is none."""
        given = list(results)
        for each in given:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
        self._results += given

    def trim_significant_figures(self) -> None:
        """Show as many figures as can be relied on."""
        self._figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best time of each column, or row, and those that are 2 and 5 times as long."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Say how far times lie apart where they do."""
        self._warnings = True

    def print(self) -> None:
        """Write it to the standard output."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            groups.setdefault(each.task_spec.label, []).append(each)
        return "\n".join(self._table(group) for group in groups.values())

    def _table(self, group: list[Measurement]) -> str:
        columns = ordered_unique(each.task_spec.description for each in group)
        rows = _rows(group)
        cells = {(_row(each), each.task_spec.description): each for each in group}
        unit, scale = select_unit(min(each.median for each in group))
        several = len({row[1] for row in rows}) > 1
        names = [f"      {f'({env})  ' if several else ''}{name}" for _, env, name in rows]
        texts = {column: self._column([cells.get((row, column)) for row in rows], scale) for column in columns}
        widths = {column: max(len(column or ""), *(len(t) for t in texts[column])) for column in columns}
        first = max(map(len, names))
        heads = [" " * first, *((column or "").center(widths[column]) for column in columns)]
        lines, former, width = [_GAP.join(heads)], 0, len(_GAP.join(heads))
        paint = self._painter(cells, rows, columns)
        for at, row in enumerate(rows):
            if row[0] != former:
                former = row[0]
                lines.append(f"{former} threads: ".ljust(width, "-"))
            painted = [paint(row, column, texts[column][at].center(widths[column])) for column in columns]
            lines.append(_GAP.join([names[at].ljust(first), *painted]))
        title = f" {group[0].task_spec.label or ''} ".center(width - 2, "-")
        return "\n".join(
            [f"[{title}]", *lines, f"\nTimes are in {unit_to_english(unit)}s ({unit}).\n", *self._notes(group)]
        )

    def _column(self, cells: list[Measurement | None], scale: float) -> list[str]:
        """The times of a column, with one number of places."""
        times = [0.0 if cell is None else cell.median / scale for cell in cells]
        places = 1
        if self._figures:
            figures = [1 if cell is None else cell.significant_figures for cell in cells]
            times = [trim_sigfig(t, n) for t, n in zip(times, figures, strict=True)]
            places = max(0, *(n - len(str(int(t))) for t, n in zip(times, figures, strict=True)))
        width = max(len(f"{t:.{places}f}") for t in times)
        notes = ["" if cell is None or not (self._warnings and cell.has_warnings) else
                 f" (! {cell.iqr / cell.median * 100:.0f}%)" for cell in cells]  # fmt: skip
        return [
            "" if cell is None else f"{t:>{width}.{places}f}{note}"
            for cell, t, note in zip(cells, times, notes, strict=True)
        ]

    def _painter(
        self, cells: dict[Any, Measurement], rows: list[Row], columns: list[Any]
    ) -> Callable[[Row, Any, str], str]:
        """What colours the text of a cell."""

        def paint(row: Row, column: object, text: str) -> str:
            cell = cells.get((row, column))
            if cell is None or self._colors is Colorize.NONE:
                return text
            rowwise = self._colors is Colorize.ROWWISE
            beside = [(row, c) for c in columns] if rowwise else [(r, column) for r in rows if r[0] == row[0]]
            ratio = cell.median / min(cells[place].median for place in beside if place in cells)
            color = (
                _BEST if ratio <= 1 else _GOOD if ratio < 1.1 else _WORST if ratio >= 5 else _BAD if ratio >= 2 else ""
            )
            return f"{color}{text}{_END}" if color else text

        return paint

    def _notes(self, group: list[Measurement]) -> list[str]:
        if not (self._warnings and any(each.has_warnings for each in group)):
            return []
        return ["(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"]


def _row(measured: Measurement) -> Row:
    return measured.task_spec.num_threads, measured.env, measured.as_row_name


def _rows(group: list[Measurement]) -> list[Row]:
    """The rows, those of fewer threads first, else in the order of the measurements."""
    return sorted(ordered_unique(_row(each) for each in group), key=lambda row: row[0])
