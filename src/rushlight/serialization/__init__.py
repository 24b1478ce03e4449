"""Files of tensors: PyTorch's format, read and written, and safetensors.

Loading executes nothing that the file names, beyond a short list of harmless constructors, unless asked to.
"""

from __future__ import annotations

import pickle  # noqa: F401  (programs take `torch.serialization.pickle` as a default)
from collections.abc import Callable
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.serialization.legacy import MAGIC, PROTOCOL
from rushlight.serialization.load import get_unsafe_globals_in_checkpoint, load
from rushlight.serialization.names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from rushlight.serialization.options import (
    MAP_PRIVATE,  # noqa: F401
    MAP_SHARED,  # noqa: F401
    LoadEndianness,
    _package_registry,  # noqa: F401
    default_restore_location,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    location_tag,
    register_package,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from rushlight.serialization.records import is_zipfile as _is_zipfile  # noqa: F401
from rushlight.serialization.records import open_zipfile_reader as _open_zipfile_reader  # noqa: F401
from rushlight.serialization.records import open_zipfile_writer as _open_zipfile_writer  # noqa: F401
from rushlight.serialization.save import save

# What `map_location` of `load` may be: a name that annotations of other packages import.
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None

__all__ = ["LoadEndianness", "SourceChangeWarning", "add_safe_globals", "check_module_version_greater_or_equal",
           "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
           "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag",
           "normalize_storage_type", "register_package", "safe_globals", "save", "set_crc32_options",
           "set_default_load_endianness", "set_default_mmap_options", "skip_data",
           "validate_cuda_device"]  # fmt: skip

DEFAULT_PROTOCOL = 2  # of pickle, as files have it unless another is asked for
MAGIC_NUMBER, PROTOCOL_VERSION = MAGIC, PROTOCOL  # of files of before 1.6
STORAGE_KEY_SEPARATOR = ","
SHORT_SIZE, INT_SIZE, LONG_SIZE = 2, 4, 4  # bytes, in files of before 1.6


class SourceChangeWarning(Warning):
    """That the code of a saved class has changed since: never warned of, files hold no code."""


def validate_cuda_device(location: str) -> int:
    """The number of the GPU of a tag.  Raises RuntimeError: there is none."""
    default_restore_location(None, location)
    return 0


def normalize_storage_type(storage_type: object) -> Any:
    """The class of torch for one of a module of a device: itself."""
    return storage_type


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least that, part by part.  Raises RuntimeError for one of another form, or warns."""
    try:
        parts = str(module.__version__).split(".")
        return (
            tuple(type(need)(part) for need, part in zip(req_version_tuple, parts, strict=False)) >= req_version_tuple
        )
    except Exception as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with tuple {req_version_tuple}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warn(f"{message}, but continuing assuming that requirement is met")
        return True
