"""Utilities around modules and parameters."""

from rushlight.nn.utils import lora, parametrizations, parametrize, rnn, stateless
from rushlight.nn.utils.clip_grad import *
from rushlight.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from rushlight.nn.utils.fusion import *
from rushlight.nn.utils.init import skip_init
from rushlight.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from rushlight.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from rushlight.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "lora",
    "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm", "rnn",
    "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip
