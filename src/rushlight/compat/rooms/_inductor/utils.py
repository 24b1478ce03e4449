"""``torch._inductor.utils``: which kinds of devices are GPUs."""

from __future__ import annotations

from rushlight import absent
from rushlight.compat.rooms.private._ordered_set import OrderedSet

__all__ = ["GPU_TYPES", "OrderedSet", "is_gpu"]

GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def is_gpu(device: str | None) -> bool:
    """Whether a kind of device is one of a GPU."""
    return device in GPU_TYPES


def is_big_gpu(index: object = 0) -> bool:
    """Whether a GPU has many processors: there is none."""
    return False


def get_gpu_shared_memory() -> int:
    """The bytes that a GPU's processors share: of none, 0."""
    return 0


def get_gpu_type() -> str:
    """The kind of GPU that is there, "cuda" where there is none."""
    return "cuda"


absent.names(
    globals(),
    "nothing is compiled here",
    "",
    "fresh_cache fresh_inductor_cache run_and_get_code run_and_get_triton_code",
)
