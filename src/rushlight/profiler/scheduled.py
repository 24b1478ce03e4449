"""Profiles by a schedule: wait, warm up, profile, hand over, again."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from rushlight.autograd import profiler as core
from rushlight.autograd.profiler import EventList, ProfilerActivity
from rushlight.autograd.profiler.chrome import write
from rushlight.basics.caller import warn


class ProfilerAction(enum.Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """A function from the number of a step to what is done in it: nothing in the first `skip_first` steps; then cycles
    of `wait` steps of nothing, `warmup` steps to warm up and `active` steps that are profiled, `repeat` times (0: for
    ever). skip_first_wait: leave out `wait` in the first cycle.

    >>> [schedule(wait=1, warmup=1, active=2, repeat=1)(n).name for n in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(f"Invalid profiler schedule arguments: wait={wait}, warmup={warmup}, active={active}, "
                             f"repeat={repeat}, skip_first={skip_first}; active must be positive")  # fmt: skip
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results: the first steps take longer", UserWarning)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"the number of a step is not negative, got {step}")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def always(step: int) -> ProfilerAction:
    """Profile every step."""
    return ProfilerAction.RECORD


_default_schedule_fn = always


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[Any], None]:  # fmt: skip
    """For `on_trace_ready`: writes each trace into the folder `dir_name`, under a name that TensorBoard's plugin and
    Holistic Trace Analysis know.  Raises RuntimeError where the folder cannot be made."""

    def handler(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class _KinetoProfile:
    """A profile that is started and stopped by hand: see `profile`."""

    def __init__(self, *, activities: Iterable[Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
                 acc_events: bool = False, custom_trace_id_callback: Any = None, **others: object):  # fmt: skip
        self.activities = set(core.supported_activities() if activities is None else activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found: activities is empty")
        if ProfilerActivity.CPU not in self.activities:
            names = sorted(ProfilerActivity(a).name for a in self.activities)
            raise AssertionError(
                f"profile(activities={names}): there is no device to profile, only ProfilerActivity.CPU"
            )
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental_config, self.acc_events = experimental_config, acc_events
        self.profiler: Any = None
        self.metadata: dict[str, Any] = {}
        self._kept: list[EventList] = []

    def start(self) -> None:
        """Start to profile."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stop it; the events are there now."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Forget the last trace and make ready for the next."""
        self.profiler = core.profile(
            record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops, with_modules=self.with_modules, experimental_config=self.experimental_config,
        )  # fmt: skip

    def start_trace(self) -> None:
        """Begin the trace that was prepared."""
        if self.profiler is None:
            raise AssertionError("the profile was not prepared: call prepare_trace() first, or start()")
        self.profiler.__enter__()

    def stop_trace(self) -> None:
        """End the trace."""
        if self.profiler is None:
            raise AssertionError("the profile was not started")
        self.profiler.__exit__(None, None, None)
        if self.acc_events:
            self._kept.append(self.profiler.function_events)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any] = ()) -> None:
        """Stop noting events, or go on."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def events(self) -> EventList:
        """The events of the last trace; of all, with acc_events."""
        if self.profiler is None:
            raise AssertionError("the profile was not started: it has no events")
        if not self.acc_events:
            return self.profiler.function_events  # type: ignore[no-any-return]
        last = self._kept[-1]
        return EventList([e for events in self._kept for e in events], last._use_device, last._profile_memory,
                         last._with_flops, last._threads)  # fmt: skip

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums of the events of one name: see `torch.autograd.profiler.profile.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for Perfetto, with the metadata; a path that ends in .gz is compressed.

        Raises AssertionError where nothing was profiled.
        """
        events = self.events()
        write(events, path, events._threads, self.metadata)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks for flame graphs; needs with_stack.  Raises AssertionError where nothing was profiled."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting stacks: enter it first")
        self.profiler.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Note a text in the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Note JSON, given as text, in the trace."""
        import json

        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


class profile(_KinetoProfile):
    """Profiles a loop: `step()` at the end of each turn, and `schedule` says which turns are profiled.

    activities: {ProfilerActivity.CPU}, the only one there is. schedule: see `schedule`; without it everything is
    profiled. on_trace_ready: called with this object whenever a cycle is complete, and at the end. record_shapes,
    profile_memory, with_stack, with_flops, with_modules, experimental_config: see
    `torch.autograd.profiler.profile`. acc_events: `events()` gives those of all cycles.

    >>> import rushlight as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> done = lambda prof: print(prof.key_averages()[0].key, prof.key_averages()[0].count)
    >>> with torch.profiler.profile(schedule=plan, on_trace_ready=done) as prof:
    ...     for _ in range(6):
    ...         y = torch.ones(2) * 2
    ...         prof.step()
    ProfilerStep* 2
    """

    def __init__(self, *, activities: Iterable[Any] | None = None, schedule: Callable[..., Any] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
                 acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
                 **others: object):  # fmt: skip
        super().__init__(activities=activities, record_shapes=record_shapes, profile_memory=profile_memory,
                         with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
                         experimental_config=experimental_config, acc_events=acc_events)  # fmt: skip
        self.schedule, self.record_steps = schedule or always, schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_mark: Any = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self._turn(ProfilerAction.NONE, self.current_action)
        self._mark()

    def stop(self) -> None:
        """End the last step; a cycle that is under way ends with it."""
        self._unmark()
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self.stop_trace()
            self._ready()
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """The next turn of the loop begins."""
        self._unmark()
        former, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._turn(former, self.current_action)
        self._mark()

    def _turn(self, former: ProfilerAction, action: ProfilerAction) -> None:
        """Start and stop as the change from one action to the next asks."""
        recording = former in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recording and (former is ProfilerAction.RECORD_AND_SAVE or not wanted):
            self.stop_trace()
            self._ready()
            recording = False
        if action is ProfilerAction.WARMUP and former is not ProfilerAction.WARMUP:
            self.prepare_trace()
        if wanted and not recording:
            if former is not ProfilerAction.WARMUP:
                self.prepare_trace()
            self.start_trace()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _mark(self) -> None:
        if self.record_steps:
            self._step_mark = core.record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _unmark(self) -> None:
        if self._step_mark is not None:
            self._step_mark.__exit__(None, None, None)
            self._step_mark = None
