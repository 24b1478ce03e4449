"""``torch.cuda.memory``: recording and the questions about memory, answered for the device that there is."""

from __future__ import annotations

from typing import Any

from rushlight.basics.devices import device
from rushlight.memory.counting.account import (
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
    trim,
)
from rushlight.memory.recordings.recorder import record_history

__all__ = ["empty_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
           "memory_stats", "memory_summary", "reset_peak_memory_stats"]  # fmt: skip


def _record_memory_history(enabled: str | None = "all", context: str | None = "all", stacks: str = "all",
                           max_entries: int = 1 << 20, device: device | str | int | None = None, clear_history: bool = False,
                           compile_context: bool = False, global_record_annotations: bool = False) -> None:  # fmt: skip
    """As `memory.record_history`."""
    record_history(enabled, context, stacks, min(max_entries, 1 << 20), device, clear_history)


def _snapshot(device: device | str | int | None = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """As `memory.snapshot`: what was recorded, in the form that PyTorch's viewer reads."""
    from rushlight.memory import snapshot

    return snapshot()


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write what `_snapshot` returns to a file."""
    from rushlight.memory import dump

    dump(filename)


def memory_reserved(device: device | str | int | None = None) -> int:
    """Bytes in use: what is freed goes back to the C library, which does not say how much of it it keeps."""
    return memory_allocated(device)


def max_memory_reserved(device: device | str | int | None = None) -> int:
    """The most bytes in use at once."""
    return max_memory_allocated(device)


def empty_cache() -> None:
    """Give freed memory back to the system."""
    trim()


def __getattr__(name: str) -> Any:
    """What `torch.cuda` has beside."""
    from rushlight import cuda

    if name not in _OTHERS:
        raise AttributeError(f"module 'torch.cuda.memory' has no attribute {name!r}")
    return getattr(cuda, name)


_OTHERS = frozenset(
    "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete caching_allocator_enable change_current_allocator "
    "get_allocator_backend get_per_process_memory_fraction host_memory_stats list_gpu_processes max_memory_cached mem_get_info "
    "memory_cached memory_snapshot memory_stats_as_nested_dict reset_accumulated_memory_stats reset_max_memory_allocated "
    "reset_max_memory_cached set_per_process_memory_fraction use_mem_pool".split()
)
