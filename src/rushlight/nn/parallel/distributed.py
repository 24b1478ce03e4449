"""DistributedDataParallel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight.basics import groups
from rushlight.nn.modules.module import Module


class DistributedDataParallel(Module):
    """Calls `module` as it is: the mean of gradients over one process is the gradient itself.

    Names in its `state_dict` begin with "module." as in PyTorch. The settings are accepted; `device_ids` may name one device.
    Raises ValueError before ``torch.distributed.init_process_group`` and for several devices, RuntimeError for a module
    without parameters that require gradients.
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
        **options: Any,
    ) -> None:
        super().__init__()
        self.process_group = groups.required() if process_group is None else process_group
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"DistributedDataParallel: expected one device in device_ids, got {list(device_ids)}")
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                               "gradient.")  # fmt: skip
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = list(device_ids) if device_ids else None
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = gradient_as_bucket_view, True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The output of the module."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are not averaged over processes: they never need to be."""
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, **options: Any) -> Iterator[None]:
        """A block in which processes may have different numbers of batches: there is one."""
        yield
