"""``torch.amp.grad_scaler``: where PyTorch keeps GradScaler."""

from enum import Enum

from rushlight.amp import GradScaler

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What was done with the gradients of an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2
