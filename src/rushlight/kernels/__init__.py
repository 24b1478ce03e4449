"""Numeric inner loops on raw arrays: a NumPy reference for each and, where a compiler is found, a native twin.

One function per kernel, the same for both; see the modules for shapes.  Nothing is compiled on import, but at
the first call that can use it.
"""

from __future__ import annotations

from rushlight.kernels.elementwise import (
    erf,
    exp,
    gelu,
    gelu_backward,
    log,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    silu,
    silu_backward,
    softplus,
    softplus_backward,
    tanh,
    tanh_backward,
)
from rushlight.kernels.native.loader import get_num_threads, set_num_threads
from rushlight.kernels.native.loader import status as native_status
from rushlight.kernels.rowwise import log_softmax, log_softmax_backward, softmax, softmax_backward
from rushlight.kernels.steps import adagrad, adam, rmsprop, sgd

__all__ = [
    "adagrad",
    "adam",
    "erf",
    "exp",
    "gelu",
    "gelu_backward",
    "get_num_threads",
    "log",
    "log_softmax",
    "log_softmax_backward",
    "native_status",
    "relu_backward",
    "rmsprop",
    "set_num_threads",
    "sgd",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softmax",
    "softmax_backward",
    "softplus",
    "softplus_backward",
    "tanh",
    "tanh_backward",
]
