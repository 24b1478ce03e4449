"""``torch.distributed.utils``: modules that are the same on all processes, and tensors within other things."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.objects import all_gather_object
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__: list[str] = []


def _verify_param_shape_across_processes(
    process_group: ProcessGroup, tensors: Sequence[Tensor], logger: object = None
) -> None:
    """Raise RuntimeError where the processes of a group have tensors of other shapes, or another number of them."""
    mine = [tuple(t.shape) for t in tensors]
    found: list[Any] = [None] * process_group.size()
    all_gather_object(found, mine, process_group)
    for rank, theirs in enumerate(found):
        if len(theirs) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but rank {process_group.rank()} has {len(mine)} params, while rank {rank} has "
                f"{len(theirs)}"
            )
        for i, (here, there) in enumerate(zip(mine, theirs, strict=True)):
            if here != there:
                raise RuntimeError(
                    f"params[{i}] in this process with sizes {list(here)} appears not to match sizes of the same param in process {rank}: "
                    f"{list(there)}"
                )


def _sync_module_states(
    module: Module,
    process_group: ProcessGroup,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Collection[str],
    broadcast_buffers: bool = True,
) -> None:
    """Give all processes the parameters, and buffers, of number `src` of a group, but those that are named to be left out."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [tensor.detach() for name, tensor in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group: ProcessGroup, module_states: Sequence[Tensor], broadcast_bucket_size: int, src: int
) -> None:
    """Give all processes the tensors of number `src` of a group."""
    for tensor in module_states:
        broadcast(tensor, group=process_group, group_src=src)


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Let names that begin with one thing begin with another.  Raises ValueError where both are the same."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for name in [name for name in state_dict if name.startswith(old_prefix)]:
        state_dict[new_prefix + name[len(old_prefix) :]] = state_dict.pop(name)


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """What is given, with `fn(tensor)` in the place of each tensor within lists, tuples, sets and dictionaries."""
    if isinstance(container, Tensor):
        return fn(container)
    if isinstance(container, dict):
        made = container.copy()
        made.update((name, _apply_to_tensors(fn, value)) for name, value in container.items())
        return made
    if hasattr(container, "_fields"):
        return type(container)(*(_apply_to_tensors(fn, value) for value in container))
    if isinstance(container, list | tuple | set):
        return type(container)(_apply_to_tensors(fn, value) for value in container)
    return container
