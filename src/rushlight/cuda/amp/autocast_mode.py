"""``torch.cuda.amp.autocast_mode``: where PyTorch keeps `autocast`."""

from rushlight.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
