"""``torch._inductor.utils``: which kinds of devices are GPUs."""

from __future__ import annotations

from rushlight.compat.rooms.private._ordered_set import OrderedSet

__all__ = ["GPU_TYPES", "OrderedSet", "is_gpu"]

GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def is_gpu(device: str | None) -> bool:
    """Whether a kind of device is one of a GPU."""
    return device in GPU_TYPES


def get_gpu_type() -> str:
    """The kind of GPU that is there, "cuda" where there is none."""
    return "cuda"
