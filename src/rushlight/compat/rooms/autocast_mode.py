"""``torch.amp.autocast_mode``: where PyTorch keeps autocast."""

from rushlight.amp import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
