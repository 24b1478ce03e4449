"""Names of ``torch.cuda`` that libraries ask for in passing; `rushlight.cuda` hands them out."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from rushlight.absent import devices as no_device
from rushlight.basics import devices

if TYPE_CHECKING:
    from rushlight.tensor import Tensor

_room: dict[str, Any] = {"__name__": "rushlight.cuda"}
_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short"

no_device.answers(_room, {
    "_is_compiled": False, "_is_in_bad_fork": False,
    "caching_allocator_enable": None, "get_arch_list": [], "get_gencode_flags": "", "get_rng_state_all": [],
    "host_memory_stats": {}, "is_current_stream_capturing": False, "is_tf32_supported": False, "max_memory_cached": 0,
    "memory_cached": 0, "memory_stats_as_nested_dict": {}, "reset_accumulated_memory_stats": None,
    "reset_max_memory_allocated": None, "reset_max_memory_cached": None, "seed": None, "seed_all": None,
})  # fmt: skip
no_device.needs(
    _room, "cuda",
    "caching_allocator_alloc caching_allocator_delete can_device_access_peer change_current_allocator clock_rate cudart "
    "current_blas_handle current_solver_handle device_memory_used get_allocator_backend get_per_process_memory_fraction "
    "get_rng_state get_stream_from_external get_sync_debug_mode graph_pool_handle initial_seed list_gpu_processes "
    "make_graphed_callables memory_snapshot memory_usage power_draw set_per_process_memory_fraction set_rng_state set_stream "
    "set_sync_debug_mode temperature use_mem_pool utilization",
)  # fmt: skip
no_device.classes(_room, "cuda", " ".join(f"{kind}Tensor {kind}Storage" for kind in _TYPES.split()))
no_device.classes(
    _room, "cuda",
    "CUDAPluggableAllocator ComplexDoubleStorage ComplexFloatStorage CudaError ExternalStream GreenContext MemPool graph",
)  # fmt: skip
_room["DeferredCudaCallError"] = type("DeferredCudaCallError", (Exception,), {"__doc__": "Never raised."})
_room.update(default_generators=(), has_half=True, has_magma=False, _initialized=False)


def set_rng_state_all(new_states: Any) -> None:
    """Give every device's generator a state.  Raises RuntimeError for more states than there are devices, which is 0."""
    if len(list(new_states)):
        raise RuntimeError("torch.cuda.set_rng_state_all: there is no CUDA device to give a state to")


class StreamContext:
    """Use a queue of work within a block: of None, the one that is in use.

    Raises RuntimeError on entering with a stream where there is no CUDA device.
    """

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


class device:
    """Choose a CUDA device within a block: of a number below 0, none.

    Raises RuntimeError on entering where there is no CUDA device, unless "cuda" means the CPU.
    """

    def __init__(self, device: device | str | int | None = None) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        if self.idx >= 0 and devices.instead_of_cuda is None:
            raise RuntimeError(f"torch.cuda.device({self.idx}): there is no CUDA device")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


class device_of(device):
    """Choose the device of a tensor within a block: of one on the CPU, none."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


def _index(device: object) -> int:
    """The number of a CUDA device; -1 for None and for other devices."""
    if device is None or isinstance(device, int):
        return -1 if device is None else device
    found = devices.device(device)
    return (found.index or 0) if found.type == "cuda" else -1


_room.update(
    StreamContext=StreamContext, device=device, device_of=device_of, set_rng_state_all=set_rng_state_all
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name not in _room:
        raise AttributeError(f"module 'rushlight.cuda' has no attribute {name!r}")
    return _room[name]
