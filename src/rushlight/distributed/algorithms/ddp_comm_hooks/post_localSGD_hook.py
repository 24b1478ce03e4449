"""A communication hook for processes that train by themselves after a number of steps (Lin et al., ICLR 2020)."""

from __future__ import annotations

from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from rushlight.distributed.group import new_subgroups
from rushlight.distributed.reducer import GradBucket

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What `post_localSGD_hook` is told, and its count of steps, `iter`.

    process_group: over whom the first `start_localSGD_iter` steps average gradients, all if None; subgroup: over whom later ones do
    where `post_local_gradient_allreduce`, and has to be given then: by default it is as many processes as there are GPUs.
    """

    __slots__ = ("iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup")

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = (
            start_localSGD_iter,
            post_local_gradient_allreduce,
        )
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step with its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Any:
    """Average gradients over all processes in the first steps, then over a part of them or not at all.  Raises ValueError without a part."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
