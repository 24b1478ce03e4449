"""Memory: see where it goes, record it, report it, bound it.

Bytes are those of NumPy's arrays and of the kernels' working memory in this process, whoever made them.
"""

from __future__ import annotations

from rushlight.memory.account import (
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
from rushlight.memory.budget import BudgetError, BudgetReport, budget
from rushlight.memory.estimates import Estimate, estimate
from rushlight.memory.recorder import dump, is_recording, mark, record_history, recording, snapshot
from rushlight.memory.recording import Recording

__all__ = [
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
    "record_history",
    "recording",
    "reset_peak",
    "reset_peak_memory_stats",
    "snapshot",
    "stats",
    "trim",
]
