"""``torch.cuda`` on a machine without CUDA: the questions are answered, the settings accepted, the rest refused.

Under ``rushlight run`` "cuda" devices mean the CPU; waiting for one then returns at once.
"""

from typing import Any

from rushlight.absent import walls
from rushlight.basics import devices
from rushlight.cuda import amp, profiler
from rushlight.cuda.streams import *
from rushlight.cuda.streams import (
    needs_device as _needs_device,
)

__all__ = [
    "Event",
    "AcceleratorError",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "profiler",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether a CUDA device can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether CUDA has been initialised: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current CUDA device computes in bfloat16: no."""
    return False


def device_count() -> int:
    """How many CUDA devices there are: 0."""
    return 0


def _lazy_call(callable: object, **kwargs: object) -> None:
    """Call something once there is a GPU in use: never."""


def init() -> None:
    """Initialise CUDA; refused with RuntimeError unless CUDA devices mean the CPU."""
    _needs_device("init")


_lazy_init = init  # by which libraries make sure of a device


def current_device() -> int:
    """The index of the current CUDA device; refused with RuntimeError where there is none."""
    _needs_device("current_device")
    return 0


def set_device(device: object) -> None:
    """Make a CUDA device the current one; refused with RuntimeError where there is none."""
    _needs_device("set_device")


def synchronize(device: object = None) -> None:
    """Wait until the device has done its work; refused with RuntimeError where there is none."""
    _needs_device("synchronize")


def get_device_name(device: object = None) -> str:
    """The name of a CUDA device; refused with RuntimeError where there is none."""
    _needs_device("get_device_name")
    return "cpu"


def get_device_capability(device: object = None) -> tuple[int, int]:
    """The compute capability of a CUDA device; always refused with RuntimeError."""
    raise RuntimeError("torch.cuda.get_device_capability: there is no CUDA device")


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Free and total bytes of a CUDA device; always refused with RuntimeError."""
    raise RuntimeError("torch.cuda.mem_get_info: there is no CUDA device")


def empty_cache() -> None:
    """Give unused memory of the allocator back: nothing to do."""


def ipc_collect() -> None:
    """Free memory that other processes no longer use: nothing to do."""


def manual_seed(seed: int) -> None:
    """Seed the current CUDA device's generator: accepted and ignored, as PyTorch does without CUDA."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every CUDA device's generator: accepted and ignored, as PyTorch does without CUDA."""
    int(seed)


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on the CUDA device: 0 without one, those of the CPU where it stands for one."""
    return int(_memory("memory_allocated", 0))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use at once: 0 without a CUDA device, those of the CPU where it stands for one."""
    return int(_memory("max_memory_allocated", 0))


def memory_reserved(device: object = None) -> int:
    """As `memory_allocated`: the C library does not say how much it keeps."""
    return memory_allocated(device)


def max_memory_reserved(device: object = None) -> int:
    """As `max_memory_allocated`."""
    return max_memory_allocated(device)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The counters of the allocator by name: none without a CUDA device."""
    return dict(_memory("memory_stats", {}))


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    """A table of what is in use; refused with RuntimeError where there is no CUDA device."""
    _needs_device("memory_summary")
    return str(_memory("memory_summary", ""))


def reset_peak_memory_stats(device: object = None) -> None:
    """Let the peaks be what is in use now."""
    _memory("reset_peak_memory_stats", None)


def _memory(name: str, otherwise: object) -> Any:
    """What the function of that name says of the CPU, where it stands for a CUDA device."""
    return otherwise if devices.instead_of_cuda is None else getattr(__getattr__("memory"), name)()


_LAZY = {"memory": "rushlight.memory.counting.cuda", "nvtx": "rushlight.compat.rooms.nvtx",
         "random": "rushlight.compat.rooms.cuda_random"}  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    if name == "CUDAGraph":
        return importlib.import_module("rushlight.compat.placeholders").CUDAGraph
    found = walls.room(f"rushlight.cuda.{name}")
    if found is not None:
        return found
    try:
        return getattr(importlib.import_module("rushlight.compat.rooms.cuda_names"), name)
    except AttributeError:  # of this module, which errors are to name
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
