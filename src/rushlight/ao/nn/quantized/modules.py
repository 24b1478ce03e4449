"""``torch.ao.nn.quantized.modules``: of layers on quantized tensors the one that is an ordinary layer."""

from rushlight.nn.modules.pooling import MaxPool2d

__all__ = ["MaxPool2d"]
