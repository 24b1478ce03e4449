"""Files of the safetensors format, by the library of that name (`pip install 'rushlight[safetensors]'`)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.errors import explained
from rushlight.dispatch.options import values
from rushlight.serialization.atomic import replacing_path
from rushlight.tensor import Tensor, wrap

__all__ = ["load_file", "save_file"]


def _library() -> ModuleType:
    try:
        return importlib.import_module("safetensors.numpy")
    except ModuleNotFoundError as error:
        raise explained(
            ModuleNotFoundError(
                "safetensors files need the library safetensors: pip install 'rushlight[safetensors]'",
                name=error.name,
            ),
            "missing-extra",
        ) from None


def save_file(
    tensors: dict[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors by name.  The file appears whole or not at all; tensors that share memory are written twice."""
    library = _library()
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"save_file: {name!r} must be a Tensor, got {type(value).__name__}")
    arrays = {name: np.ascontiguousarray(values("safetensors", t)).reshape(t.shape) for name, t in tensors.items()}
    with replacing_path(filename) as path:
        library.save_file(arrays, path, metadata=metadata)


def load_file(filename: str | os.PathLike[str], device: device | str | int | None = "cpu") -> dict[str, Tensor]:
    """Read tensors by name.  device: only the CPU.  Raises what the library does for damaged files."""
    if str(device) != "cpu":
        raise RuntimeError(f"load_file: tensors are read to the CPU, and device={device!r} was asked for")
    library = _library()
    try:
        return {name: wrap(array) for name, array in library.load_file(os.fspath(filename)).items()}
    except AttributeError:  # the library looks for numbers of 8 bits among the names of NumPy
        return {name: wrap(array) for name, array in _by_bytes(Path(filename).read_bytes())}


_WORDS = {
    "BF16": "bfloat16",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3": "float8_e4m3fn",
}
_KINDS = {"F": "float", "I": "int", "U": "uint"}


def _by_bytes(data: bytes) -> Iterator[tuple[str, Array]]:
    """Names and arrays of the bytes of a file."""
    for name, found in importlib.import_module("safetensors").deserialize(data):
        word = found["dtype"]
        dtype = getattr(dtypes, _WORDS.get(word) or _KINDS[word[0]] + word[1:].lower())
        yield name, np.array(np.frombuffer(found["data"], dtype.numpy)).reshape(found["shape"])
