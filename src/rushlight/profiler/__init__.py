"""``torch.profiler``: profiles of a loop by a schedule, and what becomes of each when it is ready."""

from rushlight import absent
from rushlight.autograd.profiler import (
    DeviceType,
    ProfilerActivity,
    _ExperimentalConfig,
    kineto_available,
    record_function,
    supported_activities,
)
from rushlight.profiler import itt
from rushlight.profiler.scheduled import (
    ProfilerAction,
    _KinetoProfile,
    profile,
    schedule,
    tensorboard_trace_handler,
)

__all__ = ["DeviceType", "ProfilerAction", "ProfilerActivity", "_ExperimentalConfig", "_KinetoProfile", "itt", "kineto_available",
           "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]  # fmt: skip

absent.names(
    globals(),
    "profiles are of operators and their memory, not of how an engine in C++ ran them",
    "ExecutionTraceObserver",
)
