"""``torch.ao.quantization``: models may have stubs for it, which pass on what they get; quantizing is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rushlight import absent
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.tensor import Tensor

__all__ = ["DeQuantStub", "QuantStub", "convert", "fuse_modules", "fuse_modules_qat", "prepare", "prepare_qat", "quantize",
           "quantize_dynamic"]  # fmt: skip


class QuantStub(Module):
    """Where a model would be quantized: passes on what it gets.  (*) -> (*)"""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Any:
        """`x` as it is."""
        return x


class DeQuantStub(QuantStub):
    """Where a model would be quantized no more: passes on what it gets.  (*) -> (*)"""


def _refused(name: str) -> Any:
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(
            f"torch.ao.quantization.{name}: there are no quantized tensors; bfloat16 halves the memory of a model"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Refused: raises NotImplementedError."
    return function


convert, fuse_modules, fuse_modules_qat, prepare, prepare_qat, quantize, quantize_dynamic = map(
    _refused, ("convert", "fuse_modules", "fuse_modules_qat", "prepare", "prepare_qat", "quantize", "quantize_dynamic")
)

# What packages look for among the modules of a model, where there is none.
absent.names(
    globals(), "there are no quantized tensors; bfloat16 halves the memory of a model",
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver ObserverBase PlaceholderObserver "
    "PerChannelMinMaxObserver QConfig QConfigMapping QuantWrapper",
)  # fmt: skip
