"""DataParallel."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module


class DataParallel(Module):
    """Calls `module` as it is: there is one device.  Names in its `state_dict` begin with "module." as in PyTorch.

    `device_ids` and `output_device` are accepted; asking for several devices raises ValueError.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DataParallel: several devices are not supported, got device_ids={list(device_ids)}: pass one or none"
            )
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids or [])
        self.output_device = output_device

    def forward(self, *inputs: object, **kwargs: object) -> Any:
        """The output of the module."""
        return self.module(*inputs, **kwargs)
