"""``torch.amp.grad_scaler``: where PyTorch keeps GradScaler."""

from rushlight.amp import GradScaler

__all__ = ["GradScaler"]
