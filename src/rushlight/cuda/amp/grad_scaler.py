"""``torch.cuda.amp.grad_scaler``: where PyTorch keeps `GradScaler`."""

from rushlight.cuda.amp import GradScaler

__all__ = ["GradScaler"]
