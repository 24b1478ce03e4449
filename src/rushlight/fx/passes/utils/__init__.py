"""What passes share."""

from rushlight.fx.passes.utils.common import HolderModule

__all__ = ["HolderModule"]
