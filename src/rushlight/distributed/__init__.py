"""Distributed training: groups of processes that MPI joins, or of one, and the optimizer step inside backward."""

from __future__ import annotations

from typing import Any

from rushlight.absent import walls
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.coalescing import all_gather_coalesced, all_reduce_coalesced
from rushlight.distributed.collectives import *
from rushlight.distributed.debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from rushlight.distributed.group import (
    Backend,
    GroupMember,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from rushlight.distributed.messages import P2POp, batch_isend_irecv, irecv, isend, monitored_barrier, recv, send
from rushlight.distributed.methods import ProcessGroupGloo
from rushlight.distributed.objects import *
from rushlight.distributed.rendezvous import register_rendezvous_handler, rendezvous
from rushlight.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore

__all__ = ["Backend", "DebugLevel", "FileStore", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup",
           "ProcessGroupGloo", "ReduceOp", "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced",
           "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced",
           "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
           "destroy_process_group", "gather", "gather_object", "get_backend", "get_debug_level",
           "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
           "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
           "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
           "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
           "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv",
           "recv_object_list", "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_single",
           "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter", "scatter_object_list",
           "send", "send_object_list", "set_debug_level", "set_debug_level_from_env", "split_group"]  # fmt: skip

_MODULES = ("_composable", "_functional_collectives", "_tensor", "algorithms", "checkpoint", "constants",
            "device_mesh", "distributed_c10d", "elastic", "fsdp", "nn", "optim", "run", "tensor",
            "utils")  # fmt: skip
_FROM = {"default_pg_timeout": "constants", "supports_complex": "collectives", "_make_nccl_premul_sum": "collectives",
         "get_backend_config": "distributed_c10d", "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh",
         "_rank_not_in_group": "distributed_c10d", "_get_default_group": "distributed_c10d",
         "_coalescing_manager": "coalescing", "_all_gather_base": "distributed_c10d",
         "_reduce_scatter_base": "distributed_c10d"}  # fmt: skip
_HERE = "rushlight.distributed"
_FROM_HERE = {"BuiltinCommHookType": "reducer", "GradBucket": "reducer"}
_DEFAULT_FIRST_BUCKET_BYTES = 2**20  # as DistributedDataParallel has it
_OPTIONS = ("AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
            "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions",
            "ScatterOptions")  # fmt: skip
_FROM_HERE |= dict.fromkeys(_OPTIONS, "methods")
_ERRORS = ("DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError")


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for; of some there are names alone."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FROM:
        return getattr(walls.imported(f"{_HERE}.{_FROM[name]}"), name)
    if name in _FROM_HERE:
        return getattr(importlib.import_module(f"{_HERE}.{_FROM_HERE[name]}"), name)
    if name in _ERRORS:
        return getattr(importlib.import_module("rushlight.distributed.errors"), name)
    found = walls.room(f"{_HERE}.{name}")
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
