"""``torch._inductor``: PyTorch's compiler, of which programs set the settings."""

from rushlight.compat.rooms._inductor import config, decomposition

__all__ = ["config", "decomposition"]
