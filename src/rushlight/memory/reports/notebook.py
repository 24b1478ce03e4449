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
    """``%load_ext rushlight.memory``: the cell magic ``%%memory``, which records a cell and shows the report on it."""

    def memory(line: str, cell: str) -> Any:
        """Run the cell, recorded; what follows the magic's name is the number of events to keep."""
        recorder.record_history(max_entries=int(line) if line.strip() else 1 << 20)
        try:
            shell.run_cell(cell)
        finally:
            recorder.record_history(None)
        return recorder.recording()

    shell.register_magic_function(memory, "cell", "memory")
