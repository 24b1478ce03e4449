"""``torch.utils._foreach_utils``: tensors by device and dtype, as optimizers take them for `torch._foreach_add_`."""

from __future__ import annotations

from typing import Any

from rushlight.optim.parts import _get_fused_kernels_supported_devices, _group_tensors_by_device_and_dtype  # noqa: F401

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices where `_foreach` functions are: the CPU, which is the only one."""
    return ["cpu"]


def _device_has_foreach_support(device: Any) -> bool:
    """Whether `_foreach` functions are there for a device."""
    return device.type in _get_foreach_kernels_supported_devices()
