"""``torch.distributed.distributed_c10d``: where PyTorch keeps the functions of ``torch.distributed``."""

from __future__ import annotations

from typing import Any

from rushlight import absent
from rushlight.basics import caller, groups
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import *  # noqa: F403
from rushlight.distributed import __all__
from rushlight.distributed.coalescing import _coalescing_manager, _CoalescingManager
from rushlight.distributed.collectives import all_gather_into_tensor as _all_gather_base  # before they had their names
from rushlight.distributed.collectives import reduce_scatter_tensor as _reduce_scatter_base
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.group import get_global_rank

__all__ += ["_CoalescingManager", "_all_gather_base", "_coalescing_manager", "_get_default_group", "_get_default_store", "_get_global_rank", "_rank_not_in_group",
            "_reduce_scatter_base", "default_pg_timeout"]  # fmt: skip

_TORCHCOMM_AVAILABLE = False  # nor another package that carries messages
_pg_map: dict[ProcessGroup, tuple[str, None]] = {}


def _get_default_group() -> ProcessGroup:
    """The group of all processes.  Raises ValueError before `init_process_group`."""
    return groups.required()


def _get_default_store() -> Any:
    """The store by which the processes of the default group met.  Raises ValueError before `init_process_group`."""
    return groups.required().store


def _get_pg_config(group: ProcessGroup | None = None) -> dict[str, Any]:
    """What a group is, by name: its backend, its size and its processes' numbers among all."""
    used = groups.required() if group is None else group
    return {
        "pg_name": used.group_name,
        "pg_desc": used.group_desc,
        "backend_config": str(used.backend),
        "pg_size": used.size(),
        "ranks": list(used.ranks),
    }


def _get_global_rank(group: ProcessGroup, rank: int) -> int:
    """`get_global_rank` by its older name, with a FutureWarning."""
    caller.warn(
        "`torch.distributed.distributed_c10d._get_global_rank` is deprecated: use get_global_rank", FutureWarning
    )
    return get_global_rank(group, rank)


def _rank_not_in_group(group: object) -> bool:
    """Whether this process is outside of a group: of none."""
    return group is not None and not isinstance(group, ProcessGroup)


absent.names(globals(), "messages between processes are MPI's here: torch.distributed has the collectives", "_CollOp _World",
             "_create_process_group_wrapper _new_process_group_helper _store_based_barrier")  # fmt: skip
