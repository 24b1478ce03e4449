"""Numeric inner loops on raw arrays: a NumPy reference for each and, where a compiler is found, a native twin.

One function per kernel, the same for both; see the modules for shapes.  Nothing is compiled on import, but at
the first call that can use it.
"""

from __future__ import annotations

from rushlight.kernels.along import add_along, along, element_index, gather_along
from rushlight.kernels.attention import sdpa, sdpa_backward, sdpa_dropout_mask
from rushlight.kernels.blockwise import adam_in_blocks, lion_in_blocks, sgd_in_blocks
from rushlight.kernels.convolution import conv, conv_input, conv_weight
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
from rushlight.kernels.gather import (
    cross_entropy,
    cross_entropy_backward,
    dropout,
    dropout_backward,
    embedding_backward,
    index_add_rows,
)
from rushlight.kernels.matrices import matmul
from rushlight.kernels.native.loader import get_num_threads, set_num_threads
from rushlight.kernels.native.loader import status as native_status
from rushlight.kernels.norms import (
    batch_apply,
    batch_norm_backward,
    batch_norm_train,
    batch_stats,
    group_norm,
    group_norm_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)
from rushlight.kernels.order import top_k
from rushlight.kernels.piecewise import (
    between_backward,
    clamp,
    hardswish,
    hardswish_backward,
    huber,
    huber_slope,
    leaky_relu,
    leaky_relu_backward,
    lerp,
    sign,
)
from rushlight.kernels.pooling import (
    col2im,
    im2col,
    max_pool,
    pool_gather,
    pool_scatter,
    window_spread,
    window_sum,
)
from rushlight.kernels.recurrent import gru, gru_backward, lstm, lstm_backward, rnn, rnn_backward
from rushlight.kernels.rows import add_large, add_row, sum_rows
from rushlight.kernels.rowwise import log_softmax, log_softmax_backward, softmax, softmax_backward
from rushlight.kernels.scans import running, running_extreme
from rushlight.kernels.steps import adagrad, adam, lion, rmsprop, sgd, sgd_many
from rushlight.kernels.sums import add_up

__all__ = [
    "top_k",
    "add_along",
    "along",
    "element_index",
    "gather_along",
    "add_large",
    "add_row",
    "sum_rows",
    "between_backward",
    "clamp",
    "hardswish",
    "hardswish_backward",
    "huber",
    "huber_slope",
    "leaky_relu",
    "leaky_relu_backward",
    "lerp",
    "sign",
    "add_up",
    "running",
    "running_extreme",
    "col2im",
    "conv",
    "conv_input",
    "conv_weight",
    "im2col",
    "matmul",
    "max_pool",
    "pool_gather",
    "pool_scatter",
    "window_spread",
    "window_sum",
    "adagrad",
    "adam",
    "adam_in_blocks",
    "batch_apply",
    "batch_norm_backward",
    "batch_norm_train",
    "batch_stats",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding_backward",
    "erf",
    "exp",
    "gelu",
    "gelu_backward",
    "get_num_threads",
    "group_norm",
    "group_norm_backward",
    "gru",
    "gru_backward",
    "index_add_rows",
    "layer_norm",
    "layer_norm_backward",
    "lion",
    "lion_in_blocks",
    "log",
    "log_softmax",
    "log_softmax_backward",
    "lstm",
    "lstm_backward",
    "native_status",
    "relu_backward",
    "rms_norm",
    "rms_norm_backward",
    "rmsprop",
    "rnn",
    "rnn_backward",
    "sdpa",
    "sdpa_backward",
    "sdpa_dropout_mask",
    "set_num_threads",
    "sgd",
    "sgd_in_blocks",
    "sgd_many",
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
