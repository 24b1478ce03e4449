"""Activation checkpointing: less memory for more computation.  Its public name is `torch.utils.checkpoint`."""

from rushlight.checkpoint.api import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from rushlight.checkpoint.devices import (
    DefaultDeviceType,
    _infer_device_type,
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)
from rushlight.checkpoint.differences import CheckpointError
from rushlight.checkpoint.frame import Group as GraphExecGroup
from rushlight.checkpoint.reentrant import CheckpointFunction
from rushlight.checkpoint.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = ["SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
           "GraphExecGroup", "SelectiveCheckpointContext", "_infer_device_type", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "set_device_states"]  # fmt: skip
