"""``torch._C._distributed_c10d``: what groups of processes are made of, below `torch.distributed`."""

from __future__ import annotations

from typing import Any

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

__all__ = ["DebugLevel", "FileStore", "HashStore", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work",
           "_set_thread_isolation_mode", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]  # fmt: skip


class _Options:
    """What a collective is asked for besides its tensors."""

    reduceOp = ReduceOp.SUM
    rootRank = rootTensor = 0
    asyncOp = True
    device: Any = None
    device_ids: Any = None
    timeout: Any = None


for _name in (
    "AllToAll",
    "Allgather",
    "AllreduceCoalesced",
    "Allreduce",
    "Barrier",
    "Broadcast",
    "Gather",
    "Reduce",
    "ReduceScatter",
    "Scatter",
):
    globals()[f"{_name}Options"] = type(
        f"{_name}Options", (_Options,), {"__doc__": _Options.__doc__, "__module__": __name__}
    )


def _set_thread_isolation_mode(enable: bool) -> None:
    """Whether groups of threads see only their own: a group is of processes here."""


absent.names(
    globals(), "messages between processes are MPI's here: torch.distributed has the collectives",
    "BuiltinCommHookType FakeProcessGroup FakeWork Logger ProcessGroupGloo Reducer _DistributedBackendOptions _SymmetricMemory",
    "_broadcast_coalesced _compute_bucket_assignment_by_size _create_work_from_future _register_builtin_comm_hook _register_comm_hook "
    "_register_process_group _resolve_process_group _unregister_all_process_groups _verify_params_across_processes",
)  # fmt: skip
