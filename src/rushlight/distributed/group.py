"""Making groups of processes, and asking for them.  Several processes reach each other by MPI."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from rushlight.basics import groups
from rushlight.basics.devices import device
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import channel, faults, mpi
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.meeting import link
from rushlight.distributed.rendezvous import rendezvous

BACKENDS = ("fake", "gloo", "nccl", "mpi", "ucc", "xccl", "undefined")


class Backend(str):
    """The name of what carries messages between processes; with one process there are none."""

    FAKE, GLOO, MPI, NCCL, UCC, UNDEFINED, XCCL = "fake", "gloo", "mpi", "nccl", "ucc", "undefined", "xccl"
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl"}

    def __new__(cls, name: str) -> Backend:
        """The name in lower case; raises ValueError for one that is not known."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {name!r}")
        parts = [part.rpartition(":")[2] for part in str(name).lower().split(",")]  # "gloo", "cpu:gloo,cuda:nccl"
        if not all(part in BACKENDS for part in parts):
            raise ValueError(f"init_process_group: expected a backend of {', '.join(BACKENDS)}, got {name!r}")
        return super().__new__(cls, str(name).lower())

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Note the name of what else carries messages: `Backend.NAME`.  No group is made with it: MPI carries them here."""
        setattr(cls, name.upper(), name.lower())


def is_available() -> bool:
    """Whether groups can be made: yes, of several processes where mpi4py is installed."""
    return True


def is_initialized() -> bool:
    """Whether the default group has been made."""
    return groups.world() is not None


def is_gloo_available() -> bool:
    """Whether a group can be made with the backend gloo: yes."""
    return True


def is_nccl_available() -> bool:
    """Whether there is NCCL: no."""
    return False


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_ucc_available() -> bool:
    """Whether there is UCC: no."""
    return False


def is_xccl_available() -> bool:
    """Whether there is oneCCL: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend is here by its own name: gloo, and mpi where mpi4py is; any of PyTorch's names makes a group."""
    return backend.lower() == "gloo" or (backend.lower() == "mpi" and is_mpi_available())


def get_default_backend_for_device(device: device | str | int) -> str:
    """The backend of a device's kind: "gloo" for the CPU.  Raises ValueError for a kind without one."""
    kind = getattr(device, "type", str(device).partition(":")[0])
    found = Backend.default_device_backend_map.get(kind)
    if found is None:
        raise ValueError(f"get_default_backend_for_device: expected a device cpu or cuda, got {device}")
    return found


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: device | int | None = None,
) -> None:
    """Make the default group: of all processes that an MPI launcher started, else of those that meet, or of this one alone.

    init_method: where processes meet that were started one by one, "env://" if None, "tcp://HOST:PORT" or "file:///PATH" (see
    `rendezvous`); world_size, rank: how many there are and which this is, where neither that nor the environment nor a
    launcher says it; store: by which they meet instead; whatever the backend's name, messages go by MPI, but with "fake": then
    this process is told of others that are not there, which have what it has.  timeout: a timedelta,
    30 minutes by default, of which messages may take as much, and the meeting.

    Raises ValueError where a number is missing or wrong and where a group is there, DistStoreError and DistNetworkError where the
    others do not come, RuntimeError where the MPI that is installed lets no processes meet that it has not started.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
    (0, 1)
    >>> torch.distributed.destroy_process_group()
    """
    name = Backend("undefined" if backend is None else backend)
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"init_process_group: Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    limit = default_pg_timeout if timeout is None else timeout
    if name == "fake":
        way: Any = channel.Imagined(rank, world_size)
    else:
        way, store = reached(init_method, store, rank, world_size, limit)
    groups.join(ProcessGroup(name, way, range(way.size), limit.total_seconds(), store, str(next(_made)), "default_pg"))
    if way.size > 1:
        if name != "fake":
            faults.watch(way.rank)
        for module in ("reducer", "algorithms.join"):  # which modules find in `groups.averaging`
            importlib.import_module(f"rushlight.distributed.{module}")


def reached(init_method: str | None, store: Any, rank: int, size: int, timeout: timedelta) -> tuple[Any, Any]:
    """The channel among all processes, and the store that they met by where no launcher joined them."""
    if mpi.launched():
        return _launched(size, rank), store
    return met(init_method, store, rank, size, timeout)


def _launched(world_size: int, rank: int) -> channel.Several:
    """The channel among processes that a launcher started.  Raises ValueError where the script says other numbers than it."""
    way = channel.world()
    _joined(way)
    size, number = way.size if world_size == -1 else world_size, way.rank if rank == -1 else rank
    if (size, number) != (way.size, way.rank):
        raise ValueError(
            f"init_process_group: expected world_size={way.size} and rank={way.rank}, got {size} and {number}"
        )
    return way


def met(init_method: str | None, store: Any, rank: int, size: int, timeout: timedelta) -> tuple[Any, Any]:
    """The channel among processes that were started one by one, and the store that they met by."""
    if store is None:
        store, rank, size = next(rendezvous(init_method or "env://", rank, size, timeout=timeout))
    else:
        assert size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: expected a rank below world_size={size}, got {rank}")
    if size == 1:
        return channel.Alone(), store
    link.join(store, rank, size, timeout.total_seconds())
    return channel.world(), store


def _joined(way: Any) -> None:
    """Raise RuntimeError where Slurm started several processes that MPI knows nothing of: each would train alone."""
    tasks = 1 if mpi.told() else int(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    if way.size == 1 and tasks > 1:
        raise RuntimeError(
            f"init_process_group: srun started {tasks} processes, and MPI knows of this one alone. Start them by srun --mpi=pmi2 "
            f"(or another of `srun --mpi=list`, which the MPI has to know too), by rushlight run -n {tasks} within the allocation, or "
            "say RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT to each"
        )


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget the default group, or give back another.  Raises AssertionError where there is none."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if not is_initialized():
        raise AssertionError("Process group cannot be None")
    gone = groups.required() if group is None else group
    if not isinstance(gone, ProcessGroup):
        raise ValueError(f"destroy_process_group: Invalid process group specified: {gone!r}")
    if gone is groups.world():
        groups.leave()
    gone.channel.close()


def member(group: ProcessGroup | None) -> ProcessGroup:
    """A group, the default one for None.  Raises ValueError before `init_process_group`."""
    if isinstance(group, ProcessGroup):
        return group
    default = groups.required()
    if group is not None and group is not GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return default if group is None else group


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process; -1 for a group without it.  Raises ValueError before `init_process_group`."""
    found = member(group)
    return -1 if found is GroupMember.NON_GROUP_MEMBER else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes there are; -1 for a group without this one.  Raises ValueError before `init_process_group`."""
    found = member(group)
    return -1 if found is GroupMember.NON_GROUP_MEMBER else found.size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that the group was made with.  Raises ValueError before `init_process_group`."""
    return member(group).backend


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK of the environment, or `fallback_rank`.  Raises RuntimeError where there is neither."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    found = mpi.local_rank() if fallback_rank is None else int(fallback_rank)
    if found is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; pass fallback_rank")
    return found


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The numbers, among all, of a group's processes."""
    return list(member(group).ranks)


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """The number among all processes of a group's process.  Raises ValueError where it has none such."""
    ranks = member(group).ranks
    if group is groups.world():
        return group_rank
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """The number in a group of one of all processes.  Raises ValueError for one that is not in it."""
    return member(group).within(global_rank)


_made = itertools.count()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: device | int | None = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes; all processes call this, and those that are not in it get NON_GROUP_MEMBER.

    ranks: all if None; use_local_synchronization: whether only those in the group call this; sort_ranks: whether they are
    numbered in it by their rank, else in the order given.  Raises ValueError for ranks that there are not.
    """
    default = groups.required()
    wanted = default.ranks if ranks is None else [int(r) for r in ranks]
    chosen = tuple(sorted(wanted) if sort_ranks else wanted)
    if len(set(chosen)) != len(chosen):
        raise ValueError(
            f"new_group: ranks list must not contain duplicate entries, got {list(chosen)}: expected different ranks below {default.size()}"
        )
    if len(chosen) > default.size():
        raise ValueError(
            "new_group: the new group's world size should be less or equal to the world size set by init_process_group, "
            f"got {len(chosen)} and {default.size()}"
        )
    if not set(chosen) <= set(default.ranks):
        raise ValueError(
            "new_group: a rank is out of range: the new group's rank should be within the world_size: expected different "
            f"ranks below {default.size()}, got {list(chosen)}"
        )
    # Processes make a group by a number that they all have: they count alike those that all of them make.
    tag = 30_000 + zlib.crc32(repr(chosen).encode()) % 2000 if use_local_synchronization else next(_made) % 30_000
    return _part(default, chosen, chosen, tag, timeout, backend, group_desc) or GroupMember.NON_GROUP_MEMBER


def _part(
    parent: ProcessGroup,
    numbers: Sequence[int],
    ranks: Sequence[int],
    tag: int,
    timeout: timedelta | None,
    backend: str | None,
    desc: str | None,
) -> ProcessGroup | None:
    """A group of some processes of another; None outside of it.  numbers: theirs in the other, ranks: among all"""
    way = parent.channel.part(numbers, tag)
    if way is None:
        return None
    seconds = parent.timeout if timeout is None else timeout.total_seconds()
    return ProcessGroup(
        parent.backend if backend is None else Backend(backend),
        way,
        ranks,
        seconds,
        None,
        str(tag),
        desc or "undefined",
    )


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """The one of several groups without common members that this process is in, None in none; all of the parent call this.

    split_ranks: for each group the numbers of its processes within the parent.  Raises ValueError where there is no list, and
    for numbers that occur twice or that there are not.
    """
    parent = member(parent_pg)
    lists = [[int(r) for r in some] for some in split_ranks or ()]
    flat = [r for some in lists for r in some]
    if not flat or len(set(flat)) != len(flat) or not set(flat) <= set(range(parent.size())):
        raise ValueError(f"split_group: expected lists of different numbers below {parent.size()}, got {split_ranks!r}")
    tag = next(_made) % 30_000
    mine = next((sorted(some) for some in lists if parent.rank() in some), None)
    return (
        None
        if mine is None
        else _part(parent, mine, [parent.ranks[r] for r in mine], tag, timeout, backend, group_desc)
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups without common members: that of this process, None in none, and all of them; all processes call this.

    ranks_per_subgroup_list: for each group its ranks.  Raises ValueError for an empty list, and for a rank that occurs twice.
    """
    lists = [[int(r) for r in some] for some in ranks_per_subgroup_list or ()]
    flat = [r for some in lists for r in some]
    if not flat:
        raise ValueError("new_subgroups_by_enumeration: The arg 'ranks_per_subgroup_list' cannot be empty")
    twice = next((r for r in flat if flat.count(r) > 1), None)
    if twice is not None:
        first, second = [some for some in lists if twice in some][:2]
        raise ValueError(
            f"new_subgroups_by_enumeration: Rank {twice} has appeared in both subgroup {first} and {second}"
        )
    found = [new_group(some, timeout, backend, group_desc=group_desc) for some in lists]
    return next((g for g, some in zip(found, lists, strict=True) if get_rank() in some), None), found


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` processes each, in the order of their ranks: that of this process, and all of them.

    group: whose processes are dealt, the default group if None.  Raises ValueError for a size that does not divide their number.
    """
    used = member(group)
    if group_size is None:
        raise ValueError("new_subgroups: expected group_size: by default it is the number of GPUs, and there is none")
    if group_size <= 0:
        raise ValueError(f"new_subgroups: The arg 'group_size' ({group_size}) must be positive")
    if group_size > used.size():
        raise ValueError(
            f"new_subgroups: The arg 'group_size' ({group_size}) must not exceed the world size ({used.size()})"
        )
    if used.size() % group_size:
        raise ValueError(f"new_subgroups: the world size ({used.size()}) must be divisible by group_size={group_size}")
    starts = range(0, used.size(), group_size)
    return new_subgroups_by_enumeration(
        [used.ranks[k : k + group_size] for k in starts], timeout, backend, group_desc=group_desc
    )


class _Group:
    """``torch.distributed.group``: its WORLD is the default group."""

    NON_GROUP_MEMBER: Any = object()

    @property
    def WORLD(self) -> ProcessGroup | None:
        """The default group, None before it is made."""
        return groups.world()


group = GroupMember = _Group()
