"""Where the time and the memory of a program go: operator by operator, forward and backward."""

from enum import Enum, IntEnum

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
from rushlight.autograd.profiler.marks import record_function
from rushlight.autograd.profiler.nvprof import load_nvprof, parse_nvprof
from rushlight.autograd.profiler.ranges import emit_itt, emit_nvtx
from rushlight.autograd.profiler.session import _ExperimentalConfig, profile
from rushlight.autograd.profiler.steps import KinetoStepTracker


class ProfilerActivity(IntEnum):
    """What can be observed."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5

    __str__ = Enum.__str__


def kineto_available() -> bool:
    """Whether the library Kineto is there: no, and nothing needs it."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be observed here."""
    return {ProfilerActivity.CPU}


__all__ = [
    "MEMORY_EVENT_NAME", "OUT_OF_MEMORY_EVENT_NAME", "DeviceType", "EventList", "FunctionEvent",
    "FunctionEventAvg", "KinetoStepTracker", "Interval", "Kernel", "ProfilerActivity", "_ExperimentalConfig",
    "emit_itt", "emit_nvtx", "kineto_available", "load_nvprof", "parse_nvprof", "profile", "record_function",
    "supported_activities",
]  # fmt: skip
