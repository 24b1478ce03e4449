"""``torch.cuda.amp.common``: whether there is a device for mixed precision of CUDA."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is none: True."""
    return True
