"""What a watcher sees: a picture that is drawn anew with each sample, or a line for each where there is no terminal for it."""

from __future__ import annotations

import os
from collections import deque
from typing import IO, Any

from rushlight.memory.counting.units import share, size
from rushlight.memory.reports.reports import COLORS
from rushlight.memory.watching.samples import Sample

__all__ = ["Lines", "Screen", "can_draw", "summary"]

BARS = " ▁▂▃▄▅▆▇█"
HEIGHT = 5  # of the curve


def can_draw(stream: IO[str]) -> bool:
    """Whether a picture can be drawn: on a terminal that can, with `rich`."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        "█▁µ·".encode(getattr(stream, "encoding", None) or "ascii")
        import rich  # noqa: F401
    except (UnicodeEncodeError, LookupError, ImportError):
        return False
    return True


def clock(seconds: float) -> str:
    """Seconds as a clock has them.

    >>> clock(75.2), clock(3725)
    ('1:15', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def headline(sample: Sample) -> str:
    """Where a program is, and how much it has."""
    step = f", step {sample['steps']}" if sample["steps"] else ""
    phase = f", {sample['phase']}" if sample["phase"] else ""
    return f"{clock(sample['seconds'])}{step}{phase}: {size(sample['now'])} now, {size(sample['peak'])} at the peak"


def summary(sample: Sample | None, title: str) -> str:
    """A sample as a text of some lines."""
    if sample is None:
        return f"{title}: nothing was seen"
    lines = [f"{title}, {headline(sample)}"]
    for what in ("categories", "modules", "lines"):
        found = list(sample[what].items())
        if found:
            lines.append(f"by {WHAT[what]}")
        lines += [f"  {size(n):>9} {share(n, sample['now']):>6}  {name.replace('_', ' ')}" for name, n in found]
    return "\n".join(lines)


WHAT = {"categories": "category", "modules": "module", "lines": "line"}


class Lines:
    """A line for each sample."""

    def __init__(self, title: str, stream: IO[str]):
        self.title, self.stream = title, stream

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, sample: Sample) -> None:
        """Write a sample."""
        kinds = ", ".join(f"{name.replace('_', ' ')} {size(n)}" for name, n in list(sample["categories"].items())[:3])
        line = next(iter(sample["lines"]), "")
        parts = [f"watch {headline(sample)}", kinds, line and f"most by {os.path.basename(line)}"]
        print("; ".join(filter(None, parts)), file=self.stream, flush=True)

    def say(self, text: str) -> None:
        """Write what the program wrote."""
        print(text, file=self.stream, flush=True)


class Screen:
    """A picture at the foot of a terminal, above which what the program prints goes by."""

    def __init__(self, title: str, stream: IO[str]):
        from rich.console import Console
        from rich.live import Live

        self.title = title
        self.console = Console(file=stream)
        self.live = Live(console=self.console, auto_refresh=False, vertical_overflow="crop")
        self.curve: deque[tuple[int, str]] = deque(maxlen=400)

    def __enter__(self) -> Screen:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def show(self, sample: Sample) -> None:
        """Draw a sample in the place of the last."""
        self.curve.append((sample["now"], next(iter(sample["categories"]), "unknown")))
        self.live.update(self.picture(sample), refresh=True)

    def say(self, text: str) -> None:
        """Let what the program wrote go by."""
        from rich.text import Text

        self.console.print(Text.from_ansi(text))

    def picture(self, sample: Sample) -> Any:
        """The picture of a sample."""
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel

        wide = self.console.width - 4
        parts = [self.history(wide), self.categories(sample, wide)]
        tables = [self.table(what, sample) for what in ("phases", "modules", "lines") if sample[what]]
        return Panel(
            Group(*parts, Columns([t for t in tables if t.row_count], expand=True, padding=(0, 2))),
            title=f"[b]{self.title}[/] · {headline(sample)}",
            subtitle=f"process {size(sample['process'])} · {sample['blocks']:,} blocks · Ctrl-C ends it with a report",
            border_style="dim",
        )

    def history(self, wide: int) -> Any:
        """Bytes over the time that was watched, a column for each sample."""
        from rich.text import Text

        shown = list(self.curve)[-(wide - 10) :]
        top = max(max((n for n, _ in shown), default=0), 1)
        text = Text()
        for row in range(HEIGHT - 1, -1, -1):
            text.append(f"{size(top) if row == HEIGHT - 1 else '0 B' if row == 0 else '':>9} ", "dim")
            for n, kind in shown:
                text.append(BARS[max(0, min(8, round(n / top * HEIGHT * 8) - row * 8))], COLORS.get(kind, "white"))
            text.append("\n" if row else "")
        return text

    def categories(self, sample: Sample, wide: int) -> Any:
        """One bar of all categories, and what its colours mean."""
        from rich.text import Text

        bar, names = Text(), Text()
        for name, n in sample["categories"].items():
            color = COLORS.get(name, "white")
            bar.append("█" * round(wide * n / max(sample["now"], 1)), color)
            names.append("■ ", color).append(f"{name.replace('_', ' ')} {size(n)}   ")
        bar.truncate(wide)
        return Text("\n").join([bar, names])

    def table(self, what: str, sample: Sample) -> Any:
        """A table of phases, modules or lines."""
        from rich.table import Table

        table = Table(title=what, title_justify="left", title_style="b", show_header=False, box=None, padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(justify="right", no_wrap=True, style="dim")
        table.add_column(no_wrap=True, overflow="ellipsis")
        for name, found in list(sample[what].items())[:5]:
            if what != "phases":
                table.add_row(size(found), share(found, sample["now"]), end_of(name))
            elif name:
                table.add_row(size(found[1]), f"{found[0]:.1f} s", name)
        return table


def end_of(name: str, room: int = 36) -> str:
    """The end of a long name, which tells it from others.

    >>> end_of("/a/very/long/way/to/the/folder/of/train.py:12", 15)
    '…of/train.py:12'
    """
    return name if len(name) <= room else "…" + name[-(room - 1) :]
