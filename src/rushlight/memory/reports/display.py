"""What memory's figures look like in a notebook, and the cell magic that records one."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

__all__ = ["advice", "load_ipython_extension", "recording", "table"]

LARGEST = 4_000_000  # characters of a page within a notebook


def table(rows: Iterable[tuple[str, str]], title: str = "") -> str:
    """Rows of a name and a figure as HTML."""
    body = "".join(
        f'<tr><td style="text-align:left">{html.escape(name)}</td><td style="text-align:right">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    head = f'<caption style="text-align:left">{html.escape(title)}</caption>' if title else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def recording(found: Any) -> str:
    """The report on a recording, as a page within the notebook; of a very long one its first lines."""
    from rushlight.memory.reports import reports
    from rushlight.memory.snapshots import snapshots

    page = reports.render(snapshots.as_arrays(found), "this recording")
    if len(page) > LARGEST:
        told = reports.subtitle(found)
        return f"<p>{html.escape(told)}. It is too long to be shown here: <code>memory.report(recording)</code> writes a page.</p>"
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="memory report" style="width:100%;height:860px;border:0"></iframe>'
    )


def advice(found: Iterable[Any]) -> str:
    """Pieces of advice with their code."""
    items = [
        f"<li><b>{html.escape(item.title)}</b>: {html.escape(item.gain)}<br>{html.escape(item.text)}"
        + (f"<pre>{html.escape(item.code)}</pre>" if item.code else "")
        + "</li>"
        for item in found
    ]
    return f"<ul>{''.join(items)}</ul>" if items else "<p>Nothing would lower the peak by a hundredth.</p>"


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext rushlight.memory``: the cell magic ``%%memory``, which records a cell and shows the report on it."""

    def memory(line: str, cell: str) -> Any:
        """Run the cell, recorded; what follows the magic's name is the number of events to keep."""
        from rushlight.memory.recordings import recorder

        recorder.record_history(max_entries=int(line) if line.strip() else 1 << 20)
        try:
            shell.run_cell(cell)
        finally:
            recorder.record_history(None)
        return recorder.recording()

    shell.register_magic_function(memory, "cell", "memory")
