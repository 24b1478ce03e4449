"""``torch.ao.quantization``: observers and rounding while a model trains; quantized tensors are refused."""

from rushlight import absent
from rushlight.ao.quantization import fake_quantize, observer, qconfig, quantize
from rushlight.ao.quantization.fake_quantize import *
from rushlight.ao.quantization.observer import *
from rushlight.ao.quantization.qconfig import *
from rushlight.ao.quantization.quantize import *
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
for _room in (fake_quantize, observer, qconfig, quantize):
    __all__ += _room.__all__

# What packages look for among the modules of a model, where there is none, and what makes quantized tensors.
absent.names(
    globals(),
    "there are no quantized tensors; bfloat16 halves the memory of a model, and prepare_qat trains it with numbers rounded",
    "QConfigMapping QuantType",
    "convert convert_dynamic_jit convert_jit fuse_modules fuse_modules_qat get_default_qat_qconfig_mapping "
    "get_default_qconfig_mapping prepare_dynamic_jit prepare_jit quantize quantize_dynamic quantize_dynamic_jit "
    "quantize_jit quantize_qat",
)
