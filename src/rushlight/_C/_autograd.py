"""``torch._C._autograd``: what saved tensors are, and saved-tensor hooks one by one instead of as a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rushlight.autograd.profiler.intervals import DeviceType as DeviceType
from rushlight.basics.state import modes, set_mode
from rushlight.engine.saved import SavedTensor as SavedTensor
from rushlight.storage import storage_of
from rushlight.tensor import Tensor

Hook: TypeAlias = Callable[..., object]


def _push_saved_tensors_default_hooks(pack_hook: Hook, unpack_hook: Hook) -> None:
    """Pack what is saved from now on by `pack_hook`, until `_pop_saved_tensors_default_hooks`.

    Raises RuntimeError where hooks are disabled.
    """
    if modes.saved_hooks_disabled is not None:
        raise RuntimeError(modes.saved_hooks_disabled)
    set_mode("saved_hooks", (*modes.saved_hooks, (pack_hook, unpack_hook)))


def _pop_saved_tensors_default_hooks() -> None:
    """Take the innermost pair away.  Raises RuntimeError where there is none."""
    if not modes.saved_hooks:
        raise RuntimeError("_pop_saved_tensors_default_hooks: there are no hooks on saved tensors to take away")
    set_mode("saved_hooks", modes.saved_hooks[:-1])


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> tuple[Hook, Hook] | None:
    """The innermost pair, or None."""
    return tuple(modes.saved_hooks[-1]) if modes.saved_hooks else None


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be set."""
    return modes.saved_hooks_disabled is None


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Refuse hooks on saved tensors with this message.  Raises RuntimeError where there are some already."""
    if modes.saved_hooks and fail_if_non_empty:
        raise RuntimeError(error_message)
    set_mode("saved_hooks_disabled", error_message)


def _saved_tensors_hooks_enable() -> None:
    """Take hooks on saved tensors again."""
    set_mode("saved_hooks_disabled", None)


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """What hooks on saved tensors are refused with; None where they are not."""
    message: str | None = modes.saved_hooks_disabled
    return message


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the run that this thread is in keeps its graph; True outside of any."""
    return bool(modes.run is None or modes.run.keep)


def _unsafe_set_version_counter(tensors: tuple[Tensor, ...], versions: tuple[int, ...]) -> None:
    """Say how often the memory of each tensor was changed: what was saved of it before is taken for unchanged so."""
    for tensor, version in zip(tensors, versions, strict=True):
        storage_of(tensor).version = int(version)
