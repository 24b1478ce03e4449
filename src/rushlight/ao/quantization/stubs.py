"""``torch.ao.quantization.stubs``: where a model would begin and end to be quantized."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(Module):
    def __init__(self, qconfig: object = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Any:
        """`x` as it is."""
        return x


class QuantStub(_Stub):
    """Where a model would begin to be quantized: passes on what it gets.  (*) -> (*)"""


class DeQuantStub(_Stub):
    """Where a model would end to be quantized: passes on what it gets.  (*) -> (*)"""


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(qconfig), DeQuantStub(qconfig), module
        self.train(module.training)

    def forward(self, X: Tensor) -> Any:
        """What the module makes of `X`."""
        return self.dequant(self.module(self.quant(X)))
