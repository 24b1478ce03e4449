"""Files of tensors: PyTorch's format, read and written, and safetensors.

Loading executes nothing that the file names, beyond a short list of harmless constructors, unless asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.devices import device
from rushlight.serialization.load import get_unsafe_globals_in_checkpoint, load
from rushlight.serialization.names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from rushlight.serialization.save import save

# What `map_location` of `load` may be: a name that annotations of other packages import.
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2  # of pickle, as files have it unless another is asked for
STORAGE_KEY_SEPARATOR = ","
