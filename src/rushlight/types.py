"""``torch.types``: names for type hints."""

import builtins
import os
from collections.abc import Sequence
from typing import IO

from rushlight.basics import devices, dtypes
from rushlight.basics.size import Size
from rushlight.storage import Storage
from rushlight.tensor import Tensor, layout

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_device, _dtype, _layout = devices.device, dtypes.dtype, layout
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_Number = (int, float, bool)

Number = int | float | bool
Device = devices.device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
