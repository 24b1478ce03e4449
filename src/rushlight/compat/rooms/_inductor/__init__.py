"""``torch._inductor``: PyTorch's compiler, of which programs set the settings."""

from rushlight.compat.rooms._inductor import config

__all__ = ["config"]
