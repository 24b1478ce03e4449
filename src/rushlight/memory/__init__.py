"""Memory: see where it goes, record it, report it, bound it.

Bytes are those of NumPy's arrays and of the kernels' working memory in this process, whoever made them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.basics.lazily import lazily
from rushlight.dispatch.keeping.rebuilt import recompute_cheap
from rushlight.memory.budgets.budget import BudgetError, BudgetReport, budget
from rushlight.memory.counting.account import (
    Live,
    Stats,
    current,
    is_counted,
    live,
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    memory_summary,
    peak,
    reset_peak,
    reset_peak_memory_stats,
    stats,
    trim,
)
from rushlight.memory.estimates.estimates import Estimate, estimate
from rushlight.memory.recordings.recorder import dump, is_recording, mark, record_history, recording, snapshot
from rushlight.memory.recordings.recording import Recording

if TYPE_CHECKING:
    from rushlight.memory.advice.advisor import Advice, advise
    from rushlight.memory.planning.frontier import Frontier, Point, frontier, max_batch
    from rushlight.memory.reports.reports import report
    from rushlight.memory.reports.terminal import text_report
    from rushlight.memory.snapshots.snapshots import (
        SnapshotError,
        from_snapshot,
        load,
        load_snapshot,
        save,
        to_snapshot,
    )
    from rushlight.memory.snapshots.validation import validate
    from rushlight.memory.watching.attach import allow_watch

__all__ = [
    "Advice",
    "Frontier",
    "Point",
    "SnapshotError",
    "advise",
    "allow_watch",
    "from_snapshot",
    "frontier",
    "load",
    "load_snapshot",
    "max_batch",
    "report",
    "save",
    "text_report",
    "to_snapshot",
    "validate",
    "BudgetError",
    "BudgetReport",
    "Estimate",
    "Live",
    "Recording",
    "Stats",
    "budget",
    "current",
    "dump",
    "estimate",
    "is_counted",
    "is_recording",
    "live",
    "mark",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "memory_summary",
    "peak",
    "recompute_cheap",
    "record_history",
    "recording",
    "reset_peak",
    "reset_peak_memory_stats",
    "snapshot",
    "stats",
    "trim",
]

# What only files and reports need is imported when it is asked for.
_LATER = {
    "Advice": "advice.advisor",
    "Frontier": "planning.frontier",
    "Point": "planning.frontier",
    "SnapshotError": "snapshots.snapshots",
    "advise": "advice.advisor",
    "allow_watch": "watching.attach",
    "from_snapshot": "snapshots.snapshots",
    "frontier": "planning.frontier",
    "load": "snapshots.snapshots",
    "load_ipython_extension": "reports.notebook",
    "load_snapshot": "snapshots.snapshots",
    "max_batch": "planning.frontier",
    "report": "reports.reports",
    "save": "snapshots.snapshots",
    "text_report": "reports.terminal",
    "to_snapshot": "snapshots.snapshots",
    "validate": "snapshots.validation",
}
__getattr__ = lazily(__name__, places={name: f"{__name__}.{place}" for name, place in _LATER.items()})


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def _shown(found: Recording) -> str:
    from rushlight.memory.reports import notebook

    return notebook.recording(found)


Recording.shown = _shown
