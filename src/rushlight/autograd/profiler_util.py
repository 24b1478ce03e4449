"""Events and lists of events, under the name of the module in which PyTorch has them."""

from rushlight.autograd.profiler.event_list import EventList
from rushlight.autograd.profiler.intervals import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    DeviceType,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
)
from rushlight.autograd.profiler.intervals import format_time as _format_time

__all__ = ["MEMORY_EVENT_NAME", "OUT_OF_MEMORY_EVENT_NAME", "DeviceType", "EventList", "FunctionEvent",
           "FunctionEventAvg", "Interval", "Kernel", "_format_time"]  # fmt: skip
