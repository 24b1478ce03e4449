"""``torch.utils._foreach_utils``: tensors by device and dtype, as optimizers take them for `torch._foreach_add_`."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """The tensors of several lists of one length, by the device and the dtype of those of the first.

    Gives {(device, dtype): (lists, places)}: the same lists with the tensors of that kind alone, and where they stood
    (nowhere, without `with_indices`).  None may stand in the later lists.  RuntimeError for lists of unequal length.
    """
    first = tensorlistlist[0]
    if any(len(others) not in (0, len(first)) for others in tensorlistlist):
        raise RuntimeError(
            f"_group_tensors_by_device_and_dtype: expected lists of one length, got {[len(n) for n in tensorlistlist]}"
        )
    found: dict[Any, Any] = {}
    for i, x in enumerate(first):
        lists, places = found.setdefault((x.device, x.dtype), ([[] for _ in tensorlistlist], []))
        for kept, given in zip(lists, tensorlistlist, strict=True):
            kept.extend(given[i : i + 1])
        if with_indices:
            places.append(i)
    return found


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices where `_foreach` functions are: the CPU, which is the only one."""
    return ["cpu"]


def _device_has_foreach_support(device: Any) -> bool:
    """Whether `_foreach` functions are there for a device."""
    return device.type in _get_foreach_kernels_supported_devices()
