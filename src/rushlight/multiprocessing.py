"""``torch.multiprocessing``: that of the standard library.  Tensors sent to another process are copied."""

from __future__ import annotations

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403
from typing import Any, NoReturn

__all__ = [*_standard.__all__]  # noqa: PLE0604
__all__ += ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors reach other processes: copied through a pipe, by the name that PyTorch's default has."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way in which tensors reach other processes."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts "file_descriptor" and "file_system": tensors are copied in either case.  Raises AssertionError for another."""
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system', got {new_strategy!r}")


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> NoReturn:  # fmt: skip
    """Refused with NotImplementedError: a Python started anew would not find rushlight under the name ``torch``."""
    raise NotImplementedError(
        f"torch.multiprocessing.spawn: cannot start {nprocs} processes, in which `torch` would not be rushlight, and which "
        f"could not train together. For one process call {getattr(fn, '__name__', 'fn')}(0, ...) itself"
    )


def start_processes(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> NoReturn:  # fmt: skip
    """Refused with NotImplementedError, as `spawn`."""
    spawn(fn, args, nprocs, join, daemon, start_method)
