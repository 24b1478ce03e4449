"""DistributedDataParallel."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.basics import groups
from rushlight.engine.modes import is_grad_enabled
from rushlight.nn.modules.module import Module


class DistributedDataParallel(Module):
    """Trains one module on several processes, each with its part of the batch: gradients are averaged over the processes.

    They are sent in buckets while the backward pass goes on.  All processes begin with the parameters and buffers of the
    first, and so keep the same.  Optimizers in backward step with the mean, bucket by bucket.

    Args:
        module: the same on all processes.
        device_ids: may name one device.
        broadcast_buffers: give all processes the buffers of the first before each forward.
        process_group: the default group if None.
        bucket_cap_mb: MiB of gradients that are sent together, 25 by default.
        find_unused_parameters: some parameters may get no gradient on some process; else that is an error.
        gradient_as_bucket_view: gradients are views of the buckets, not copies.
        static_graph: as `find_unused_parameters`.

    Names in its `state_dict` begin with "module." as in PyTorch.  Raises ValueError before
    ``torch.distributed.init_process_group`` and for several devices, RuntimeError for a module without parameters that require
    gradients and where processes have different ones.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **options: object,
    ) -> None:
        super().__init__()
        self.process_group = groups.required() if process_group is None else process_group
        self._processes = self.process_group.size()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids can only be None or contain a single element, got {list(device_ids)}"
            )
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                               "gradient.")  # fmt: skip
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = list(device_ids) if device_ids else None
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = gradient_as_bucket_view, True
        self.require_forward_param_sync = True  # as the forward before it was to be averaged
        self.reducer: Any = None
        if self._processes > 1:
            if init_sync:
                frozen = [p for p in module.parameters() if not p.requires_grad]
                groups.averaging["same_everywhere"](named, [*frozen, *module.buffers()], self.process_group)
            cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 2**20)
            unused = find_unused_parameters or static_graph
            self.reducer = groups.averaging["Reducer"](named, self.process_group, cap, unused, gradient_as_bucket_view)

    def forward(self, *inputs: object, **kwargs: object) -> Any:
        """The output of the module."""
        source = 0
        if "_join" in self.__dict__:
            groups.averaging["notify"](self)
            source = self.__dict__["_join"].active[0]
        if self._processes > 1 and self.broadcast_buffers and self.require_forward_param_sync:
            for buffer in self.module.buffers():
                groups.averaging["broadcast"](buffer, group=self.process_group, group_src=source)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = self.require_backward_grad_sync and is_grad_enabled()
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients add up on each process; they are averaged with those of the first pass behind it."""
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        self._set_active(False)
        try:
            yield
        finally:
            self.require_backward_grad_sync = former
            self._set_active(former)

    def _set_active(self, active: bool) -> None:
        if self.reducer is not None:
            self.reducer.active = active

    def register_comm_hook(self, state: object, hook: Callable[[object, Any], Any]) -> None:
        """Let ``hook(state, bucket)`` average the gradients of a bucket; it returns a Future of the tensor.

        bucket: a ``distributed.GradBucket``.  Raises RuntimeError the second time, TypeError for what cannot be called, ValueError
        for annotations of something else.
        """
        check_hook(hook)
        if self.reducer is None:
            return
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.state, self.reducer.hook = state, hook

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> contextlib.AbstractContextManager[Any]:  # fmt: skip
        """A block in which processes may have different numbers of batches.

        One that has none left answers the others with gradients of 0, and takes their parameters in the end.
        divide_by_initial_world_size: whether gradients are divided by the number of all processes, not of those that have a batch;
        enable: False for a block without effect; throw_on_early_termination: an error on all as soon as one has no batch.
        """
        if self._processes == 1 or not enable:
            return contextlib.nullcontext()
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        found: contextlib.AbstractContextManager[Any] = groups.averaging["joined"](
            self, enable, throw_on_early_termination, **options
        )
        return found


def check_hook(hook: Any) -> None:
    """Raise TypeError or ValueError for what is no communication hook."""
    if not callable(hook):
        raise TypeError(f"Communication hook must be callable, got {hook!r}")
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):  # of compiled code
        return
    bucket = signature.parameters.get("bucket")
    kind = inspect.Parameter.empty if bucket is None else bucket.annotation
    if kind is not inspect.Parameter.empty and getattr(kind, "__name__", str(kind).rpartition(".")[2]) != "GradBucket":
        raise ValueError(f"Communication hook: bucket annotation should be dist.GradBucket, got {kind}")
