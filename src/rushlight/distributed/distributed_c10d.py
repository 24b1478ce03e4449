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

__all__ += ["_CoalescingManager", "_all_gather_base", "_coalescing_manager", "_get_default_group",
            "_get_default_store", "_get_global_rank", "_rank_not_in_group", "_reduce_scatter_base",
            "default_pg_timeout"]  # fmt: skip

_TORCHCOMM_AVAILABLE = False  # nor another package that carries messages


class _Groups:
    """The groups of this process."""

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The default one, None before it is made."""
        return groups.world()

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Any]]:
        """For each its backend and its store."""
        return {group: (str(group.backend), group.store) for group in groups.named.values()}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """Their names."""
        return {group: name for name, group in groups.named.items()}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """For each the numbers of its processes, by their numbers among all."""
        return {group: {rank: i for i, rank in enumerate(group.ranks)} for group in groups.named.values()}

    @property
    def group_count(self) -> int:
        """How many there are."""
        return len(groups.named)


_world = _Groups()
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
        "backend_config": get_backend_config(used),
        "pg_size": used.size(),
        "ranks": list(used.ranks),
    }


class BackendConfig:
    """Which backend is for which kind of device, of a backend's name or of a text as "cpu:gloo,cuda:nccl".

    Raises ValueError for a kind that occurs twice, and for parts that are no pairs.
    """

    def __init__(self, backend: Any) -> None:
        name = str(backend)
        pairs = [part.split(":") for part in name.split(",")] if ":" in name else [["cpu", name], ["cuda", name]]
        if name == "undefined":
            pairs = [["cpu", "gloo"]]
        bad = next((pair for pair in pairs if len(pair) != 2), None)
        if bad is not None:
            raise ValueError(
                f"Invalid device:backend pairing: {':'.join(bad)!r} in {name!r}: expected something like cpu:gloo,cuda:nccl"
            )
        self.device_backend_map: dict[str, Backend] = {}  # noqa: F405
        for device, kind in pairs:
            if device in self.device_backend_map:
                raise ValueError(f"Duplicate device type {device} in backend string {name!r}")
            self.device_backend_map[device] = Backend(kind)  # noqa: F405

    def get_device_backend_map(self) -> dict[str, Any]:
        """The backends by kind of device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{kind}" for device, kind in self.device_backend_map.items())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backends of a group by kind of device: "cpu:gloo,cuda:gloo".  Raises ValueError before `init_process_group`."""
    return repr(BackendConfig(groups.required().backend if group is None else group.backend))


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of a name.  Raises RuntimeError where there is none."""
    found = groups.named.get(group_name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return found


def _get_process_group_name(pg: ProcessGroup) -> str:
    """The name by which all processes know a group."""
    return pg.group_name


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
