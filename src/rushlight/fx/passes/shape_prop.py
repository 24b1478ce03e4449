"""What a graph's steps give: shapes and dtypes, found by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.basics.dtypes import dtype
from rushlight.basics.size import Size
from rushlight.dispatch.formats import channels_last, channels_last_3d, contiguous_format, memory_format
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, leaves, map_aggregate
from rushlight.tensor import Tensor

FORMATS = (contiguous_format, channels_last, channels_last_3d)
__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _metadata(x: object) -> object:
    if not isinstance(x, Tensor):
        return x
    form = next((form for form in FORMATS if fits(x, form)), None)
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, tuple(x.stride()), form, False, {})


def fits(x: Tensor, form: memory_format) -> bool:
    """Whether a tensor's memory is in that order."""
    dims = {channels_last: 4, channels_last_3d: 5}.get(form, x.ndim)
    return bool(x.ndim == dims and x.is_contiguous(memory_format=form))


_extract_tensor_metadata = _metadata  # as PyTorch has its name


class ShapeProp(Interpreter):
    """Runs a graph, and keeps in ``node.meta["tensor_meta"]`` and ``node.meta["type"]`` what each step gave."""

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The result of one step, noted."""
        result = super().run_node(n)
        noted = map_aggregate(result, _metadata)
        if any(isinstance(x, Tensor) for x in leaves(result)):
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: object) -> Any:
        """Run on these arguments; the result."""
        return self.run(*args)
