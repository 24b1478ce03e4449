"""``torch.amp.grad_scaler``: where PyTorch keeps GradScaler."""

from enum import Enum
from typing import Any

from rushlight.amp import GradScaler

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What was done with the gradients of an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What a scaler of a library knows of an optimizer after an update."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}
