"""``torch.onnx``: exporting is refused; what libraries register for it when they are imported is kept and never used."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.onnx import symbolic_helper, symbolic_opset11

__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "export", "is_in_onnx_export",
           "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset11", "unregister_custom_op_symbolic"]  # fmt: skip

_registered: dict[tuple[str, int], Callable[..., Any]] = {}


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes.  Source: the enumeration DataType of ONNX's TensorProto."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class TrainingMode(enum.Enum):
    """How a model shall be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What shall become of operators that ONNX has not."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: no."""
    return False


def export(*args: object, **kwargs: object) -> NoReturn:
    """Refused: raises NotImplementedError."""
    raise NotImplementedError(
        "torch.onnx.export: rushlight exports no ONNX; save model.state_dict() with torch.save, load it in PyTorch and "
        "export it there"
    )


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Keep what says how an operator is exported; nothing asks for it."""
    _registered[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what says how an operator is exported."""
    _registered.pop((symbolic_name, opset_version), None)
