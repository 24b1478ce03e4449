"""``torch.profiler``: profiles of a loop by a schedule, and what becomes of each when it is ready."""

from rushlight.autograd.profiler import (
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

__all__ = ["ProfilerAction", "ProfilerActivity", "_ExperimentalConfig", "_KinetoProfile", "itt", "kineto_available",
           "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]  # fmt: skip
