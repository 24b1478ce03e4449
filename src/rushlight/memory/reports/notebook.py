"""A recording's report within a notebook, and the cell magic that makes one."""

from __future__ import annotations

import html
from typing import Any

from rushlight.memory.recordings import recorder
from rushlight.memory.recordings.recording import Recording
from rushlight.memory.reports import reports
from rushlight.memory.snapshots import snapshots

__all__ = ["load_ipython_extension", "recording"]

LARGEST = 4_000_000  # characters of a page within a notebook


def recording(found: Recording) -> str:
    """The report on a recording, as a page within the notebook; of a very long one its first lines."""
    page = reports.render([(snapshots.as_arrays(found), "this recording")])
    if len(page) > LARGEST:
        told = reports.subtitle(found)
        return f"<p>{html.escape(told)}. It is too long to be shown here: <code>memory.report(recording)</code> writes a page.</p>"
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="memory report" style="width:100%;height:860px;border:0"></iframe>'
    )


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext rushlight.memory``: the magic ``%%memory``, which records a cell, or ``%memory`` a line, and shows the report on it."""

    def memory(line: str, cell: str | None = None) -> Any:
        """Run the cell, recorded, or the line.

        Before a cell what follows the magic's name is the number of events to keep: 1048576 unless given.
        """
        recorder.record_history(max_entries=1 << 20 if cell is None else number_of_events(line))
        try:
            shell.run_cell(line if cell is None else cell)
        finally:
            recorder.record_history(None)
        return recorder.recording()

    shell.register_magic_function(memory, "line_cell", "memory")


def number_of_events(text: str) -> int:
    """The number behind the magic's name.  Raises ValueError for what is none."""
    words = text.strip() or str(1 << 20)
    if not words.isdecimal() or int(words) == 0:
        raise ValueError(f"%%memory takes the number of events to keep, or nothing; got {words!r}")
    return int(words)
