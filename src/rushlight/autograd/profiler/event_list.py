"""A list of events: which lies in which, sums, tables and files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.autograd.profiler.intervals import DeviceType, FunctionEventAvg

if TYPE_CHECKING:
    import os

    from rushlight.autograd.profiler.intervals import FunctionEvent

METRICS = ("self_cpu_time_total", "self_device_time_total", "self_cuda_time_total", "self_xpu_time_total",
           "self_cpu_memory_usage", "self_device_memory_usage")  # fmt: skip


class EventList(list[Any]):
    """Events of a profile, or their averages (see `key_averages`)."""

    def __init__(self, events: Iterable[Any] = (), use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False, threads: dict[int, str] | None = None):  # fmt: skip
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._threads = threads or {}  # the names of the threads by number
        self._tree_built = False

    @property
    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write."""
        return list(METRICS)

    def _build_tree(self) -> EventList:
        """Find for each event the innermost one of its thread that it lies in."""
        if self._tree_built:
            return self
        by_thread: dict[int, list[Any]] = defaultdict(list)
        for event in self:
            if event.device_type == DeviceType.CPU and not event.is_async:
                by_thread[event.thread].append(event)
        for events in by_thread.values():
            _nest(events)
        self._tree_built = True
        return self

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the CPU: the sum of what events spent outside the events within them."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums of the events of one name; of one name and the same shapes, or the same innermost `group_by_stack_n`
        lines of the stack, if so asked."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = _key(event, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
            if key not in sums:
                sums[key] = FunctionEventAvg()
            sums[key].add(event)
        made = EventList(sums.values(), self._use_device, self._profile_memory, self._with_flops, self._threads)
        for average in made:
            average.stack = average.stack[:group_by_stack_n] if group_by_stack_n else []
            average.input_shapes = average.input_shapes if group_by_input_shapes else ""
            average.overload_name = average.overload_name if group_by_overload_name else ""
        return made

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, under the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key, total.input_shapes, total.stack, total.overload_name = "Total", [], [], ""
        total.cpu_children = total.cpu_parent = None
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:  # fmt: skip
        """The list as a table.

        sort_by: an attribute, in falling order: `cpu_time`, `cpu_time_total`, `self_cpu_time_total`,
        `cpu_memory_usage`, `self_cpu_memory_usage`, `count`, the same of `cuda` and `device`, ...; the order of the
        list without it. row_limit: at most so many rows, all with -1. top_level_events_only: leave out events that lie
        in others. time_unit: "s", "ms" or "us" instead of the one that suits.

        Raises AttributeError for a `sort_by` that the events do not have.
        """
        from rushlight.autograd.profiler.table import render

        return render(self, sort_by, row_limit, (max_name_column_width, max_shapes_column_width, max_src_column_width),
                      header, top_level_events_only, time_unit)  # fmt: skip

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: threads by name, events
        in events, and arrows from each operator to the node that it recorded.  A path that ends in .gz is compressed."""
        from rushlight.autograd.profiler.chrome import write

        write(self, path, self._threads)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write one line for each event that has a stack, "outermost;...;innermost value", for flame graph tools.

        Raises ValueError for a metric that is not in `supported_export_stacks_metrics`.
        """
        if metric not in METRICS:
            raise ValueError(f"metric should be one of: {list(METRICS)}, got {metric!r}")
        blank = str.maketrans(" ;\t\n", "____")
        lines = []
        for event in self:
            if event.stack:
                value = int(getattr(event, metric.replace("_xpu_", "_device_")))
                if value > 0:
                    path_to = ";".join(entry.translate(blank) for entry in reversed(event.stack))
                    lines.append(f"{path_to} {value}\n")
        Path(path).write_text("".join(lines), encoding="utf-8")

    def __str__(self) -> str:
        return self.table()


def _nest(events: list[Any]) -> None:
    """Set parents and children among the events of one thread.  Of two with the same times the earlier in the list is
    the outer one."""
    order = sorted(range(len(events)), key=lambda i: (events[i].time_range.start, -events[i].time_range.end, i))
    open_events: list[Any] = []
    for i in order:
        event = events[i]
        while open_events and event.time_range.end > open_events[-1].time_range.end:
            open_events.pop()
        if open_events:
            event.set_cpu_parent(open_events[-1])
            open_events[-1].append_cpu_child(event)
        open_events.append(event)


def _key(event: FunctionEvent, shapes: bool, stack_n: int, overload: bool) -> tuple[Any, ...]:
    """What tells groups of events apart."""
    return (event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation,
            str(event.input_shapes) if shapes else "", event.overload_name if overload else "",
            tuple(event.stack[:stack_n]))  # fmt: skip
