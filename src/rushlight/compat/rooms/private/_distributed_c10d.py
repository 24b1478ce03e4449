"""``torch._C._distributed_c10d``: what groups of processes are made of, below `torch.distributed`."""

from __future__ import annotations

from rushlight import absent
from rushlight.distributed import FileStore as FileStore
from rushlight.distributed import HashStore as HashStore
from rushlight.distributed import PrefixStore as PrefixStore
from rushlight.distributed import ProcessGroup as ProcessGroup
from rushlight.distributed import ReduceOp as ReduceOp
from rushlight.distributed import Store as Store
from rushlight.distributed import TCPStore as TCPStore
from rushlight.distributed import Work as Work
from rushlight.distributed.debug import DebugLevel as DebugLevel
from rushlight.distributed.debug import get_debug_level as get_debug_level
from rushlight.distributed.debug import set_debug_level as set_debug_level
from rushlight.distributed.debug import set_debug_level_from_env as set_debug_level_from_env
from rushlight.distributed.methods import AllgatherOptions as AllgatherOptions
from rushlight.distributed.methods import AllreduceCoalescedOptions as AllreduceCoalescedOptions
from rushlight.distributed.methods import AllreduceOptions as AllreduceOptions
from rushlight.distributed.methods import AllToAllOptions as AllToAllOptions
from rushlight.distributed.methods import BarrierOptions as BarrierOptions
from rushlight.distributed.methods import BroadcastOptions as BroadcastOptions
from rushlight.distributed.methods import GatherOptions as GatherOptions
from rushlight.distributed.methods import ProcessGroupGloo as ProcessGroupGloo
from rushlight.distributed.methods import ReduceOptions as ReduceOptions
from rushlight.distributed.methods import ReduceScatterOptions as ReduceScatterOptions
from rushlight.distributed.methods import ScatterOptions as ScatterOptions
from rushlight.distributed.reducer import BuiltinCommHookType as BuiltinCommHookType

__all__ = ["AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
           "BroadcastOptions", "BuiltinCommHookType", "DebugLevel", "FileStore", "GatherOptions", "HashStore",
           "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "ReduceOp", "ReduceOptions", "ReduceScatterOptions",
           "ScatterOptions", "Store", "TCPStore", "Work", "_set_thread_isolation_mode", "get_debug_level",
           "set_debug_level", "set_debug_level_from_env"]  # fmt: skip


def _set_thread_isolation_mode(enable: bool) -> None:
    """Whether groups of threads see only their own: a group is of processes here."""


absent.names(
    globals(),
    "messages between processes are MPI's here: torch.distributed has the collectives",
    "FakeProcessGroup FakeWork Logger Reducer _DistributedBackendOptions _SymmetricMemory",
    "_broadcast_coalesced _compute_bucket_assignment_by_size _create_work_from_future _register_builtin_comm_hook _register_comm_hook "
    "_register_process_group _resolve_process_group _unregister_all_process_groups _verify_params_across_processes",
)
