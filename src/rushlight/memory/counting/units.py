"""Bytes and times as people read them."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size(n: float) -> str:
    """Bytes with three digits: 1_210_000_000 is "1.21 GB".

    >>> size(1_210_000_000), size(999), size(-45_600_000)
    ('1.21 GB', '999 B', '-45.6 MB')
    """
    value, unit = abs(float(n)), 0
    while value >= 999.95 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    places = 0 if unit == 0 else 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{'-' if n < 0 else ''}{value:.{places}f} {UNITS[unit]}"


def share(part: float, whole: float) -> str:
    """A part of a whole: "20 %".

    >>> share(1, 5), share(1, 300), share(0, 0)
    ('20 %', '0.3 %', '0 %')
    """
    value = 100 * part / whole if whole else 0.0
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def clock(seconds: float) -> str:
    """Seconds with three digits: "12.5 ms", "1.21 s"."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def duration(us: float) -> str:
    """Microseconds as a time: "12.5 ms".

    >>> duration(250), duration(12_500), duration(3_210_000), duration(600_000_000)
    ('250 µs', '12.5 ms', '3.21 s', '10.0 min')
    """
    for limit, unit, name in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms"), (1.2e8, 1e6, "s"), (7.2e9, 6e7, "min")):
        if us < limit:
            value = us / unit
            places = 0 if unit == 1 or value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{places if name != 'min' else 1}f} {name}"
    return f"{us / 3.6e9:.1f} h"
