"""``torch.distributed.distributed_c10d``: where PyTorch keeps the functions of ``torch.distributed``."""

from __future__ import annotations

from rushlight.basics import groups
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed import *  # noqa: F403
from rushlight.distributed import __all__
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.group import BACKENDS

__all__ += ["_get_default_group", "_rank_not_in_group", "default_pg_timeout", "is_xccl_available"]

_pg_map: dict[ProcessGroup, tuple[str, None]] = {}


def _get_default_group() -> ProcessGroup:
    """The group of all processes.  Raises ValueError before :func:`init_process_group`."""
    return groups.required()


def _rank_not_in_group(group: object) -> bool:
    """Whether this process is outside of a group: of none."""
    return group is not None and not isinstance(group, ProcessGroup)


def is_xccl_available() -> bool:
    """Whether there is oneCCL: no."""
    return "xccl" not in BACKENDS
