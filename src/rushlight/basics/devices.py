"""Devices: where a tensor's bytes are."""

from __future__ import annotations

import threading
from typing import Any

from rushlight.basics.foreign import kind_of
from rushlight.basics.state import set_mode

_former = threading.local()  # the devices to go back to, innermost first
# Kinds that may be named; tensors are made on the CPU alone.
KINDS = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
         "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")  # fmt: skip
instead_of_cuda: Any = (
    None  # called where memory of "cuda" is asked for and the CPU's is given: `rushlight run` sets it
)


class device:
    """A place for tensors: a kind and, for kinds that have several, an index.

    >>> import rushlight as torch
    >>> torch.device("cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")
    type: str
    index: Any

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None):
        if type is None or device is not None:
            type = _alone(type, index, device)
        if isinstance(type, self.__class__):
            if index is not None:
                raise TypeError(
                    "device(): argument 'type' (position 1) must be str, not torch.device, where an index follows"
                )
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "cuda", type
        elif isinstance(type, str) and ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, number = type.split(":", 1)
            if not number.isdigit() or (number[0] == "0" and len(number) > 1):
                raise RuntimeError(f"Invalid device string: '{type}:{number}'")
            index = int(number)
        elif not isinstance(type, str):
            raise TypeError(f"device() received an invalid combination of arguments - got ({kind_of(type)}): expected a device, "
                            "or the name of one and perhaps an index")  # fmt: skip
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative, got {index}")
        if type not in KINDS:
            raise RuntimeError(f"Expected one of {', '.join(KINDS)} device type at start of device string: {type}")
        self.type, self.index = type, index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        """Within the block, this is the device of new tensors."""
        _former.stack = (set_mode("default_device", None if self == CPU else self), *getattr(_former, "stack", ()))
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        set_mode("default_device", _former.stack[0])
        _former.stack = _former.stack[1:]


def _alone(kind: Any, index: int | None, named: Any) -> Any:
    """What is given by the keyword `device`, with nothing beside it.  Raises TypeError otherwise, also for nothing at all."""
    if named is None or kind is not None or index is not None:
        raise TypeError("device(): expected a type, with or without an index, or a device alone")
    return named


CPU = device("cpu")
