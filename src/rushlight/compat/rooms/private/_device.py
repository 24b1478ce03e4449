"""``torch.utils._device``: functions whose tensors are made on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.devices import device as Device
from rushlight.utils._contextlib import context_decorator

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """`with torch.device(device):`, under the name by which libraries know it."""

    def __init__(self, device: Any):
        self.device = Device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.device.__exit__(*error)


def set_device(device: device | str | int | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a function whose factories make tensors on `device`.

    >>> import rushlight as torch
    >>> from rushlight.compat.rooms.private._device import set_device
    >>> set_device("meta")(lambda: torch.ones(2))().device
    device(type='meta')
    """

    return lambda func: context_decorator(lambda: DeviceContext(device), func)
