"""`profile`: the context manager that observes, and holds what it saw."""

from __future__ import annotations

from time import perf_counter_ns as clock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rushlight.autograd.profiler.assemble import assemble
from rushlight.autograd.profiler.collector import Collector, DetailedCollector
from rushlight.autograd.profiler.event_list import EventList
from rushlight.autograd.profiler.intervals import FunctionEventAvg
from rushlight.basics.caller import warn
from rushlight.basics.events import Observation

if TYPE_CHECKING:
    import os


_running: list[profile] = []  # those whose block is entered


def _profiler_enabled() -> bool:
    """Whether something is being profiled."""
    return bool(_running)


def _disable_profiler() -> None:
    """Stop what is being profiled."""
    while _running:
        _running[-1].__exit__(None, None, None)


DEVICES = ("cuda", "xpu", "mtia", "hpu", "privateuseone")


class _ExperimentalConfig:
    """Settings that may change.  profile_all_threads: observe every thread, not only the one that profiles; the other
    settings concern tools that are not here, and are kept without effect."""

    def __init__(self, profiler_metrics: Any = (), profiler_measure_per_kernel: bool = False, verbose: bool = False,
                 performance_events: tuple[Any, ...] = (), enable_cuda_sync_events: bool = False,
                 adjust_profiler_step: bool = False, disable_external_correlation: bool = False,
                 profile_all_threads: bool = False, capture_overload_names: bool = False, **others: object):  # fmt: skip
        self.profiler_metrics, self.profiler_measure_per_kernel = profiler_metrics, profiler_measure_per_kernel
        self.verbose, self.performance_events = verbose, performance_events
        self.enable_cuda_sync_events, self.adjust_profiler_step = enable_cuda_sync_events, adjust_profiler_step
        self.disable_external_correlation = disable_external_correlation
        self.profile_all_threads, self.capture_overload_names = profile_all_threads, capture_overload_names
        self.__dict__.update(others)


def available_device(use_device: str | None, use_cuda: bool) -> None:
    """Say that no device can be timed; the profile goes on without."""
    if use_cuda:
        warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
            FutureWarning,
        )
        use_device = "cuda"
    if use_device is None:
        return
    if use_device not in DEVICES:
        warn(f"The {use_device} is not a valid device option.", UserWarning)
        return
    name = use_device.upper()
    warn(f"{name} is not available, disabling {name} profiling", UserWarning)


class profile:
    """Notes every operator and every node of a backward while active, and sums up where the time went.

    enabled: with False it does nothing, and `as` gives None. use_cuda, use_device: time a device too; none can be timed
    here, which is said in a warning. record_shapes: note the sizes of all inputs. with_flops: estimate floating-point
    operations from them. profile_memory: note the bytes that operators and nodes make and give back. with_stack: note
    the lines of the user's code. with_modules: note the modules whose forward is running (`event.module_hierarchy`).
    use_kineto, acc_events, custom_trace_id_callback, post_processing_timeout_s, activity_filters: settings of a library
    that is not here, taken without effect. use_cpu: must be True. experimental_config: see `_ExperimentalConfig`;
    `profile_all_threads` of it observes all threads, where otherwise it is the thread that profiles.

    >>> import rushlight as torch
    >>> x = torch.ones(1, 1, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     (x ** 2).backward()
    >>> [event.name for event in prof.function_events][:2]
    ['aten::pow', 'torch::autograd::GraphRoot']
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
                 record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
                 use_mtia: bool = False, experimental_config: Any = None, acc_events: bool = False,
                 custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None,
                 activity_filters: Any = None):  # fmt: skip
        self.enabled, self.entered = enabled, False
        self.use_device: str | None = None
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.use_cpu, self.use_kineto, self.acc_events = use_cpu, use_kineto, acc_events
        self.experimental_config = _ExperimentalConfig() if experimental_config is None else experimental_config
        self._events: EventList | None = None
        self._collector: Any = None
        if not enabled:
            return
        if use_mtia:
            use_device = "mtia"
        available_device(use_device, use_cuda)
        if not use_cpu:
            reason = "there is no device to profile" if use_kineto else "they need use_kineto=True"
            raise AssertionError(f"profile(use_cpu=False): device-only events are not supported: {reason}")

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start()
        return self

    def _start(self) -> None:
        everywhere = self.experimental_config.profile_all_threads
        if self.record_shapes or self.with_stack or self.with_modules or self.profile_memory:
            self._collector = DetailedCollector(everywhere, self.record_shapes, self.with_stack, self.with_modules,
                                                self.profile_memory)  # fmt: skip
        else:
            self._collector = Collector(everywhere)
        self._observation = Observation(self._collector, everywhere)
        self._begun = clock()
        self._observation.__enter__()
        _running.append(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._collector is not None and self._collector.active:
            self._observation.__exit__(kind, error, tb)
            self._collector.active = False
            self._ended = clock()
        if self in _running:
            _running.remove(self)

    def toggle_collection_dynamic(self, enabled: bool, activities: object = ()) -> None:
        """Stop noting events, or go on, in the middle of a profile."""
        if self._collector is not None:
            self._collector.active = bool(enabled)

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began.  Raises RuntimeError before the profile has ended."""
        if self._collector is None or (self._events is None and not hasattr(self, "_ended")):
            raise RuntimeError("Profiler didn't finish running: its events are there after the `with` block")
        if self._events is None:
            self._events = assemble(self._collector, self._begun, self.use_device, self.profile_memory, self.with_flops)
            self._collector.rows, self._collector.frees = [], []
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums of the events of one name; with `group_by_input_shape` (needs record_shapes) of one name and the same
        sizes, with `group_by_stack_n` (needs with_stack) of one name and the same innermost lines."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the CPU, each counted once: the sum of the events' self times."""
        return self.function_events.self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:  # fmt: skip
        """The events as a table: see `EventList.table`."""
        return self.function_events.table(sort_by, row_limit, max_src_column_width, max_name_column_width,
                                          max_shapes_column_width, header, top_level_events_only)  # fmt: skip

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for Perfetto: see `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks for flame graphs: see `EventList.export_stacks`.  Raises RuntimeError without with_stack."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def __str__(self) -> str:
        if self._collector is None or (self._events is None and not hasattr(self, "_ended")):
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    __repr__ = __str__
