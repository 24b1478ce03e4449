"""What memory's figures look like in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

__all__ = ["advice", "table"]


def table(rows: Iterable[tuple[str, str]], title: str = "") -> str:
    """Rows of a name and a figure as HTML."""
    body = "".join(
        f'<tr><td style="text-align:left">{html.escape(name)}</td><td style="text-align:right">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    head = f'<caption style="text-align:left">{html.escape(title)}</caption>' if title else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def advice(found: Iterable[Any]) -> str:
    """Pieces of advice with their code."""
    items = [
        f"<li><b>{html.escape(item.title)}</b>: {html.escape(item.gain)}<br>{html.escape(item.text)}"
        + (f"<pre>{html.escape(item.code)}</pre>" if item.code else "")
        + "</li>"
        for item in found
    ]
    return f"<ul>{''.join(items)}</ul>" if items else "<p>Nothing would lower the peak by a hundredth.</p>"
