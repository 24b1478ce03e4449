"""Communication hooks of DistributedDataParallel."""

import enum
from typing import Any

from rushlight.absent import walls
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(enum.Enum):
    """Communication hooks by name."""

    ALLREDUCE, FP16_COMPRESS, BF16_COMPRESS = "allreduce", "fp16_compress", "bf16_compress"
    POWER_SGD, POWER_SGD_RANK2 = "powerSGD", "powerSGD of rank 2"
    BATCHED_POWER_SGD, BATCHED_POWER_SGD_RANK2 = "batched_powerSGD", "batched_powerSGD of rank 2"

    def hook(self) -> Any:
        """The function."""
        name = f"{self.value.split()[0]}_hook"
        return getattr(powerSGD_hook if "powerSGD" in name else default_hooks, name)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a hook average the gradients of a DistributedDataParallel.

    state: the process group; of the PowerSGD hooks the group too, of which a `PowerSGDState` is made, of rank 1 or 2.
    """
    if "powerSGD" in comm_hook_type.value:
        rank = 2 if comm_hook_type.value.endswith("2") else 1
        state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(state, comm_hook_type.hook())


__getattr__ = walls.lacking(__name__, "default_hooks", "powerSGD_hook")
