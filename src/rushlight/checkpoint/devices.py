"""The parts of `torch.utils.checkpoint` that speak of devices and of inputs."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from rushlight.basics import tree
from rushlight.basics.caller import warn
from rushlight.tensor import Tensor


class DefaultDeviceType:
    """The kind of device whose random states are preserved where the arguments do not tell: the CPU unless it was set."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What it is."""
        return DefaultDeviceType._default_device_type


def kinds_of(args: object) -> list[str]:
    """The kinds of devices, other than the CPU, of the tensors in a tree of arguments, in order."""
    return [x.device.type for x in tree.tree_leaves(args) if isinstance(x, Tensor) and x.device.type != "cpu"]


def _infer_device_type(*args: object) -> str:
    """The kind of device, other than the CPU, of the first tensor that has one; the default where none has."""
    kinds = kinds_of(args)
    if len(set(kinds)) > 1:
        warn(f"Tensor arguments, excluding CPU tensors, are detected on at least two types of devices: {sorted(set(kinds))}; "
             f"device state is saved for {kinds[0]} alone", UserWarning)  # fmt: skip
    return kinds[0] if kinds else DefaultDeviceType.get_device_type()


def devices_of(args: tuple[Any, ...]) -> list[Any]:
    """The devices, other than the CPU, of the tensors in a tree of arguments."""
    found = [x.device for x in tree.tree_leaves(args) if isinstance(x, Tensor)]
    return list(dict.fromkeys(d for d in found if d.type not in ("cpu", "meta")))


def get_device_states(*args: object) -> tuple[list[int], list[Any]]:
    """The devices of the arguments and their random states; the CPU's is not among them."""
    devices = [d.index or 0 for d in devices_of(args)]
    if not devices:
        return [], []
    cuda: Any = importlib.import_module("rushlight.cuda")
    return devices, [cuda.get_rng_state(d) for d in devices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Restore what `get_device_states` returned."""
    cuda: Any = importlib.import_module("rushlight.cuda")
    for device, state in zip(devices, states, strict=True):
        cuda.set_rng_state(state, device)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input requires grad: a reentrant checkpoint then has no gradients at all."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with tensors detached, requiring grad as they did.  Raises RuntimeError for what is no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)
