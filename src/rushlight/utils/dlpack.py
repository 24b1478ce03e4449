"""DLPack under PyTorch's name."""

from rushlight.ops.create.interchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
