"""What memory is in use: bytes now and at the peak, and what is alive by category, module and line."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.basics import heap
from rushlight.basics.devices import device
from rushlight.kernels import allocator
from rushlight.memory.counting import holders
from rushlight.memory.recordings import recorder
from rushlight.memory.recordings.recording import ALLOC, CATEGORIES, CATEGORY, FREE, Recording


def human(count: float) -> str:
    """Bytes as text: 1.21 GB.  Units are powers of 1,000."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size) < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"


def given(count: int) -> str:
    """Bytes as somebody gave them: 2 GiB where it is one of whole MiB, else as `human`.

    >>> given(2 << 30), given(3 << 29), given(2 * 10**9)
    ('2 GiB', '1.5 GiB', '2 GB')
    """
    if count <= 0 or count % (1 << 20):
        return human(count)
    mebibytes = count >> 20
    return f"{mebibytes} MiB" if mebibytes < 1024 else f"{mebibytes / 1024:g} GiB"


@dataclass(frozen=True)
class Stats:
    """Bytes of arrays and of kernels' working memory since the package was imported.

    current, peak: bytes in use, now and at most since `reset_peak`. blocks: allocations alive. total_bytes,
    total_blocks: ever allocated, -1 without the native kernels, where nobody counts them. process, process_peak:
    resident bytes of the whole process, from the system, -1 where it does not say.
    """

    current: int
    peak: int
    blocks: int
    total_bytes: int
    total_blocks: int
    process: int
    process_peak: int

    def __str__(self) -> str:
        return "\n".join(f"{name:<20} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        from rushlight.memory.reports import display

        return display.table(self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """The figures with their names, as text."""
        rows = [
            ("arrays now", human(self.current)),
            ("arrays at the peak", human(self.peak)),
            ("arrays alive", f"{self.blocks:,}"),
        ]
        if self.total_blocks >= 0:
            rows.append(("allocated ever", f"{human(self.total_bytes)} in {self.total_blocks:,} blocks"))
        if self.process >= 0:
            rows += [("process now", human(self.process)), ("process at its peak", human(self.process_peak))]
        return rows


def totals() -> allocator.Totals:
    """What the allocator counted, and what was alive before it was there: where kernels had to be compiled first."""
    if allocator.was_late():
        for block in holders.distinct().values():
            allocator.library().adopt(block.address, block.size, block.category)
    return allocator.totals()


def stats() -> Stats:
    """Bytes and blocks in use.

    >>> from rushlight import memory
    >>> memory.stats().current <= memory.stats().peak
    True
    """
    t = totals()
    return Stats(t.bytes, t.peak, allocator.blocks(), t.bytes_ever, t.blocks_ever, *process_memory())


def process_memory() -> tuple[int, int]:
    """Resident bytes of this process, now and at most (VmRSS and VmHWM); -1 where the system does not say."""
    found = {"VmRSS": -1, "VmHWM": -1}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) * 1024
    return found["VmRSS"], found["VmHWM"]


def is_counted() -> bool:
    """Whether memory is counted: everywhere, but where RUSHLIGHT_COUNT_MEMORY or an unknown NumPy forbids it."""
    return allocator.install()


def current() -> int:
    """Bytes in use now."""
    return totals().bytes


def peak() -> int:
    """The most bytes in use at once since the import, or since `reset_peak`."""
    return totals().peak


def reset_peak() -> None:
    """Let the peak be what is in use now."""
    allocator.reset_peak()


def trim() -> bool:
    """Give freed memory that is kept for the next arrays back to the system; whether some was."""
    return heap.give_back()


@dataclass(frozen=True)
class Block:
    """A block that is alive: bytes, category, and, as far as known, the operator, module and line that made it."""

    size: int
    category: str
    operator: str = ""
    module: str = ""
    line: str = ""


@dataclass(frozen=True)
class Live:
    """What is alive.  The dictionaries give bytes, the largest first; they add up to `total`."""

    total: int
    blocks: list[Block]
    by_category: dict[str, int] = field(default_factory=dict)
    by_module: dict[str, int] = field(default_factory=dict)
    by_line: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{human(self.total)} alive in {len(self.blocks):,} blocks"]
        for title, table in (("category", self.by_category), ("module", self.by_module), ("line", self.by_line)):
            if set(table) - {""}:
                lines += ["", f"by {title}"]
                lines += [f"  {human(n):>9}  {n / max(self.total, 1):4.0%}  {name or '(not known)'}"
                          for name, n in list(table.items())[:10]]  # fmt: skip
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from rushlight.memory.reports import display

        tables = (("by category", self.by_category), ("by module", self.by_module), ("by line", self.by_line))
        told = [(title, found) for title, found in tables if set(found) - {""}]
        return f"<p>{human(self.total)} alive in {len(self.blocks):,} blocks</p>" + "".join(
            display.table([(name or "(not known)", human(n)) for name, n in list(found.items())[:10]], title)
            for title, found in told
        )


def live() -> Live:
    """What is alive now, by category, by module, and, of what was made while recording, by line.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> layer = torch.nn.Linear(100, 100)
    >>> memory.live().by_category["parameter"] >= 40400
    True
    """
    total = totals().bytes
    held = holders.distinct()
    blocks = _recorded(held) if recorder.is_recording() else [
        Block(b.size, CATEGORIES[b.category], module=_module(b)) for b in held.values()
    ]  # fmt: skip
    known = sum(b.size for b in blocks)
    if known < total:
        blocks.append(Block(total - known, "unknown"))
    blocks.sort(key=lambda b: -b.size)
    tables = [_sums(blocks, name) for name in ("category", "module", "line")]
    return Live(max(total, known), blocks, *tables)


def _module(block: holders.Held) -> str:
    return block.name.rpartition(".")[0] if block.category in (holders.PARAMETER, holders.GRADIENT) else ""


def _sums(blocks: list[Block], name: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for block in blocks:
        key = getattr(block, name)
        sums[key] = sums.get(key, 0) + block.size
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _recorded(held: dict[int, holders.Held]) -> list[Block]:
    """The blocks alive at the end of the running recording, with what `held` knows of those from before it."""
    found = recorder.recording()
    alive, category = at_end(found)
    names = {b.address: b for b in held.values()}
    blocks = []
    for k in np.flatnonzero(alive):
        stack, known = found.stack[k], names.get(int(found.address[k]))
        line = found.stacks[stack][0] if stack >= 0 and found.stacks[stack] else None
        blocks.append(Block(
            int(found.size[k]), CATEGORIES[category[k] or (known.category if known else 0)],
            found.operators[found.operator[k]] if found.operator[k] >= 0 else "",
            found.modules[found.module[k]] if found.module[k] >= 0 else _module(known) if known else "",
            f"{line.filename}:{line.line}" if line else "",
        ))  # fmt: skip
    return blocks


def at_end(recording: Recording) -> tuple[Any, Any]:
    """Which blocks are alive after the last event, and the last category of each.  (B), (B)"""
    alive = np.zeros(len(recording.size), bool)
    alive[: recording.initial] = True
    category = np.zeros(len(recording.size), np.uint8)
    category[: recording.initial] = recording.initial_category
    told = (recording.action == ALLOC) | (recording.action == CATEGORY)
    category[recording.block[told]] = recording.value[told]
    alive[recording.block[recording.action == ALLOC]] = True
    alive[recording.block[recording.action == FREE]] = False
    return alive, category


# The names that PyTorch gives to the same questions ---------------------------------------------------------------


def memory_allocated(device: device | str | int | None = None) -> int:
    """Bytes in use now."""
    return current()


def max_memory_allocated(device: device | str | int | None = None) -> int:
    """The most bytes in use at once since `reset_peak_memory_stats`."""
    return peak()


def reset_peak_memory_stats(device: device | str | int | None = None) -> None:
    """Let the peaks be what is in use now."""
    reset_peak()


def memory_stats(device: device | str | int | None = None) -> dict[str, int]:
    """The counters under PyTorch's names: "allocated_bytes.all.current" and so on."""
    t = totals()
    return {
        "allocated_bytes.all.current": t.bytes, "allocated_bytes.all.peak": t.peak,
        "allocated_bytes.all.allocated": t.bytes_ever, "allocated_bytes.all.freed": t.bytes_ever - t.bytes,
        "allocation.all.current": allocator.blocks(), "allocation.all.allocated": t.blocks_ever,
        "allocation.all.freed": t.blocks_ever - t.blocks,
    }  # fmt: skip


def memory_summary(device: device | str | int | None = None, abbreviated: bool = False) -> str:
    """A table of what is in use."""
    return str(stats()) if abbreviated else f"{stats()}\n\n{live()}"
