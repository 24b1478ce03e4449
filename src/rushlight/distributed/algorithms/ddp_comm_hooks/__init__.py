"""Communication hooks of DistributedDataParallel."""

import enum
from typing import Any

from rushlight.absent import walls
from rushlight.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from rushlight.distributed.algorithms.ddp_comm_hooks import optimizer_overlap_hooks as optimizer_overlap
from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from rushlight.distributed.algorithms.ddp_comm_hooks import quantization_hooks as quantization

__all__ = [
    "DDPCommHookType",
    "debugging",
    "default",
    "optimizer_overlap",
    "powerSGD",
    "quantization",
    "register_ddp_comm_hook",
]


class DDPCommHookType(enum.Enum):
    """Communication hooks by name."""

    ALLREDUCE, FP16_COMPRESS, BF16_COMPRESS, NOOP = "allreduce", "fp16_compress", "bf16_compress", "noop"
    QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL = "quantization_pertensor", "quantization_perchannel"
    POWER_SGD, POWER_SGD_RANK2 = "powerSGD", "powerSGD of rank 2"
    BATCHED_POWER_SGD, BATCHED_POWER_SGD_RANK2 = "batched_powerSGD", "batched_powerSGD of rank 2"

    def hook(self) -> Any:
        """The function."""
        name = f"{self.value.split()[0]}_hook"
        return next(getattr(room, name) for room in (default, powerSGD, quantization, debugging) if hasattr(room, name))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a hook average the gradients of a DistributedDataParallel.

    state: the process group; of the PowerSGD hooks the group too, of which a `PowerSGDState` is made, of rank 1 or 2.
    """
    if "powerSGD" in comm_hook_type.value:
        rank = 2 if comm_hook_type.value.endswith("2") else 1
        state = powerSGD.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(state, comm_hook_type.hook())


__getattr__ = walls.lacking(__name__, "debugging_hooks", "default_hooks", "optimizer_overlap_hooks",
                             "post_localSGD_hook", "powerSGD_hook", "quantization_hooks")  # fmt: skip
