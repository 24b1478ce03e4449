"""Making and asking for the group of processes.  More than one process is refused."""

from __future__ import annotations

import os
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from rushlight.basics import groups
from rushlight.basics.groups import ProcessGroup

BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "undefined")


class Backend(str):
    """The name of what carries messages between processes; with one process there are none."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl"}

    def __new__(cls, name: str) -> Backend:
        """The name in lower case; raises ValueError for one that is not known."""
        parts = [part.rpartition(":")[2] for part in str(name).lower().split(",")]  # "gloo", "cpu:gloo,cuda:nccl"
        if not all(part in BACKENDS for part in parts):
            raise ValueError(f"init_process_group: expected a backend of {', '.join(BACKENDS)}, got {name!r}")
        return super().__new__(cls, str(name).lower())


def is_available() -> bool:
    """Whether there is a process group.

    Packages that are told so import all of PyTorch's distributed modules, most of which are not here: it is not said
    before a script has made a group, of one process.
    """
    return is_initialized()


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
    """Whether there is MPI: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the default group, of this process alone.

    The number of processes and this one's are given, or stand in `init_method` or in the environment as WORLD_SIZE and RANK.
    Raises NotImplementedError for more than one process, ValueError where a number is missing or a group is there.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
    (0, 1)
    >>> torch.distributed.destroy_process_group()
    """
    name = Backend("undefined" if backend is None else backend)
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    size = world_size if world_size != -1 else _given("WORLD_SIZE", init_method, store)
    number = rank if rank != -1 else _given("RANK", init_method, store)
    if size > 1:
        raise NotImplementedError(
            f"init_process_group: expected world_size=1, got {size}: rushlight trains in one process. Start one process, "
            "with a batch as large as those of all together or with gradients accumulated over several batches"
        )
    if size != 1 or number != 0:
        raise ValueError(f"init_process_group: expected world_size=1 and rank=0, got {size} and {number}")
    groups.join(ProcessGroup(name))


def _given(variable: str, init_method: str | None, store: Any) -> int:
    """A number from the address of the meeting place, or from the environment."""
    if store is None and (init_method is None or init_method.startswith("env://")):
        if variable not in os.environ:
            raise ValueError("Error initializing torch.distributed using env:// rendezvous: environment variable "
                             f"{variable} expected, but not set")  # fmt: skip
        return int(os.environ[variable])
    found = parse_qs(urlsplit(init_method or "").query).get(variable.lower())
    if not found:
        raise ValueError(f"init_process_group: the argument {variable.lower()} is missing")
    return int(found[0])


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget the default group; of another group, do nothing.  Raises AssertionError where there is none."""
    if not is_initialized():
        raise AssertionError("Process group cannot be None")
    if group is None or group is groups.world():
        groups.leave()


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process: 0.  Raises ValueError before :func:`init_process_group`."""
    return groups.required().rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes there are: 1.  Raises ValueError before :func:`init_process_group`."""
    return groups.required().size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that the group was made with.  Raises ValueError before :func:`init_process_group`."""
    return (group or groups.required()).backend


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK of the environment, or `fallback_rank`.  Raises RuntimeError where there is neither."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; pass fallback_rank")
    return int(fallback_rank)


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The processes of a group: [0]."""
    groups.required()
    return [0]


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number among all processes of a group's process: 0 of 0.  Raises ValueError for another."""
    groups.required()
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in a group of one of all processes: 0 of 0.  Raises ValueError for another."""
    groups.required()
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return 0


def new_group(ranks: Any = None, timeout: Any = None, backend: str | None = None, **options: Any) -> ProcessGroup:
    """Another group of this process.  Raises ValueError for other ranks than 0."""
    default = groups.required()
    if ranks is not None and list(ranks) != [0]:
        raise ValueError(f"new_group: expected ranks=[0], got {list(ranks)}: there is one process")
    return ProcessGroup(default.backend if backend is None else Backend(backend))


class _Group:
    """``torch.distributed.group``: its WORLD is the default group."""

    NON_GROUP_MEMBER = -100

    @property
    def WORLD(self) -> ProcessGroup | None:
        """The default group, None before it is made."""
        return groups.world()


group = GroupMember = _Group()
