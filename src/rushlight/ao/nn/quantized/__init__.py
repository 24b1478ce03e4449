"""``torch.ao.nn.quantized``: layers on quantized tensors, of which there are none, and those that compute with ordinary ones."""

from rushlight import absent
from rushlight.ao.nn.quantized import modules
from rushlight.ao.nn.quantized.modules import FloatFunctional, FXFloatFunctional, MaxPool2d

__all__ = ["FXFloatFunctional", "FloatFunctional", "MaxPool2d", "modules"]
absent.names(
    globals(), "there are no quantized tensors: float16 and bfloat16 halve the bytes of float32",
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize Dropout ELU Embedding "
    "EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LayerNorm "
    "LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid Softmax",
)  # fmt: skip
