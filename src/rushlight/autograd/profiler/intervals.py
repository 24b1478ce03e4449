"""Events: a stretch of time of one operator, node or mark, and the sums of several."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


class DeviceType(enum.IntEnum):
    """Where an event took place."""

    CPU = 0
    CUDA = 1

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device that an event started; duration in microseconds."""

    name: str
    device: int
    duration: float


def format_time(us: float, unit: str | None = None) -> str:
    """Microseconds as text: in the unit asked for ("s", "ms", "us"), or in the one that suits.

    >>> format_time(1234.5), format_time(12), format_time(12, "ms")
    ('1.234ms', '12.000us', '0.012ms')
    """
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    if unit not in ("s", "ms", "us"):
        raise ValueError(f"time_unit must be 's', 'ms' or 'us', got {unit!r}")
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def time_text(name: str) -> Any:
    """A property that is attribute `name`, a time, as text."""
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}` as text.")


class Times:
    """The times of an event or of a sum of events, under all their names, as numbers and as text."""

    count: int
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float
    self_cpu_memory_usage: int
    self_device_memory_usage: int

    @property
    def cpu_time(self) -> float:
        """Time on the CPU of one call, on average, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Time on the device of one call, on average, in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    cpu_time_str = time_text("cpu_time")
    device_time_str = time_text("device_time")
    cpu_time_total_str = time_text("cpu_time_total")
    device_time_total_str = time_text("device_time_total")
    self_cpu_time_total_str = time_text("self_cpu_time_total")
    self_device_time_total_str = time_text("self_device_time_total")


class FunctionEvent(Times):
    """One event.

    time_range: an `Interval` from the start of the profile; thread: its number, from 1 in order of appearance;
    sequence_nr: number of the node that the operator recorded, or of the node that ran, -1 without; scope: 0 of
    operators, 1 of nodes, 7 of marks; stack: "file(line): function", the innermost first; flops: an estimate or None;
    module_hierarchy: classes of the modules around, "A.B"; cpu_memory_usage: bytes allocated less bytes freed,
    children included.
    """

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float,
                 overload_name: str | None = None, fwd_thread: int | None = None, input_shapes: Any = None,
                 stack: Any = None, scope: int = 0, use_device: str | None = None, cpu_memory_usage: int = 0,
                 device_memory_usage: int = 0, is_async: bool = False, is_remote: bool = False,
                 sequence_nr: int = -1, node_id: int = -1, device_type: DeviceType = DeviceType.CPU, device_index: int = 0,
                 device_resource_id: int | None = None, is_legacy: bool = False, flops: int | None = None,
                 trace_name: str | None = None, concrete_inputs: Any = None, kwinputs: Any = None,
                 is_user_annotation: bool = False, module_hierarchy: str = ""):  # fmt: skip
        self.id, self.name, self.trace_name = id, name, trace_name or name
        self.overload_name, self.node_id = overload_name or "", node_id
        self.thread, self.fwd_thread, self.time_range = thread, fwd_thread, Interval(start_us, end_us)
        self.input_shapes, self.concrete_inputs = input_shapes or [], concrete_inputs or []
        self.kwinputs = kwinputs or {}
        self.stack, self.scope, self.sequence_nr, self.flops = list(stack or []), scope, sequence_nr, flops
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.is_user_annotation, self.module_hierarchy = is_user_annotation, module_hierarchy
        self.count = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Note work on a device that this event started."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent | None) -> None:
        """Note the event that this one lies in."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What events are grouped by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from start to end; 0 of an event on another device."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds outside the events within this one; 0 of what went on beside its thread, as messages do."""
        if self.is_async:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds of the work on a device that this event started, that of the events within it included."""
        if self.use_device is None:
            return 0.0
        own = sum(kernel.duration for kernel in self.kernels)
        return own if self.is_legacy else own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """The same outside the events within this one."""
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:  # type: ignore[override]
        """Bytes allocated less bytes freed outside the events within this one."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:  # type: ignore[override]
        """The same on the device."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type!s} thread={self.thread} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_time={self.cpu_time_str} "
            f"cpu_children={[child.id for child in self.cpu_children]} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} seq_nr={self.sequence_nr} is_async={self.is_async}>"
        )


class FunctionEventAvg(Times):
    """The sum of events of one key."""

    SUMS = ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage",
            "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count")  # fmt: skip

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.device_time_total = self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: Any = None
        self.scope: int | None = None
        self.node_id, self.overload_name = -1, ""
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.device_type: Any = DeviceType.CPU
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or another sum of events of the same key, to this sum."""
        if self.key is None:
            for name in ("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
                         "input_shapes", "stack", "scope", "device_type", "is_legacy", "use_device",
                         "is_user_annotation"):  # fmt: skip
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"events of different keys have no sum: {self.key!r} and {other.key!r}")
        for name in self.SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage}>"
        )
