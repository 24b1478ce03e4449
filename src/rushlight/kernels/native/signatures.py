"""The native functions' arguments, a letter each: a ndarray (or None), n size, u unsigned 64-bit,
i int, d double.

``rl_<name>_f32`` and ``rl_<name>_f64`` are exported for each.  Raise ``ABI`` when the meaning of one changes.
"""

from __future__ import annotations

ABI = 21

SIGNATURES: dict[str, str] = {
    # activations.cpp: inputs, output, elements
    "exp": "aan",
    "log": "aan",
    "tanh": "aan",
    "erf": "aan",
    "sigmoid": "aan",
    "silu": "aan",
    "silu_backward": "aaan",
    "sigmoid_backward": "aaan",
    "tanh_backward": "aaan",
    "relu_backward": "aaan",
    "relu_backward_mask": "aaan",
    "gelu": "aani",
    "gelu_backward": "aaani",
    "softplus": "aandd",
    "softplus_backward": "aaandd",
    # piecewise.cpp: inputs, output, elements, numbers
    "sign": "aan",
    "hardswish": "aan",
    "hardswish_backward": "aaan",
    "clamp": "aandd",
    "between_backward": "aaandd",
    "leaky_relu": "aand",
    "leaky_relu_backward": "aaand",
    "huber": "aaandd",
    "huber_slope": "aaandd",
    "lerp": "aaand",
    # matrices.cpp: two factors, row or None, result
    "multiply": "aaaa",
    # rows.cpp: matrix, row, rows, columns
    "add_row": "aann",
    "add": "aaan",
    # sums.cpp: input, result, elements before, in and behind the dimension
    "sum": "aannn",
    "sum_of_squares": "aannn",
    "sum_of_sizes": "aannn",
    "row_products": "aann",
    # scan.cpp: input, results, elements before, in and behind the dimension
    "running_sum": "aannni",
    "running_product": "aannni",
    "running_extreme": "aaannni",
    # softmax.cpp: inputs, output, outer, count, inner
    "softmax": "aannn",
    "log_softmax": "aannn",
    "softmax_backward": "aaannn",
    "log_softmax_backward": "aaannn",
    # norm.cpp: arrays in, arrays out, extents
    "layer_norm": "aaaaaa" + "nnd",
    "rms_norm": "aaaa" + "nnd",
    "layer_norm_backward": "aaaaaaaa" + "nn",
    "rms_norm_backward": "aaaaaa" + "nn",
    "group_norm": "aaaaaa" + "nnnnd",
    "group_norm_backward": "aaaaaaaa" + "nnnn",
    "batch_stats": "aaa" + "nnn",
    "batch_apply": "aaaaaa" + "nnni",
    "batch_norm_backward": "aaaaaaaa" + "nnni",
    # along.cpp: values, index, values, extents
    "gather_along": "aaannnn",
    "add_along": "aaannnn",
    # order.cpp: input, values, indices, rows, elements of each, how many, whether the largest
    "top_k": "aaannni",
    # gather.cpp
    "index_add_rows": "aaannn",
    "cross_entropy": "aaaaaa" + "nnnd",
    "cross_entropy_backward": "aaaaaa" + "nnnnd",
    "dropout": "aaanuud",
    "dropout_backward": "aaand",
    # attention.cpp: scores (heads, rows, columns), mask (heads or 1, rows, columns) or None, ...
    "attention_softmax": "aaand",
    "attention_again": "aaand",
    "attention_slope": "aad",
    # attention_fused.cpp: operands, results, whether causal, scale
    "attention": "aaaaaaid",
    "attention_backward": "a" * 9 + "id",
    # recurrent.cpp: arrays (steps and packed weight among them), rows, batch, hidden units, steps
    "lstm": "a" * 9 + "nnnn",
    "lstm_backward": "a" * 10 + "nnnn",
    "gru": "a" * 9 + "nnnn",
    "gru_backward": "a" * 11 + "nnnn",
    "rnn": "a" * 6 + "innnn",
    "rnn_backward": "a" * 7 + "innnn",
    # conv.cpp: two operands, result, windows (see windows.h)
    "conv": "aaaa",
    "conv_input": "aaaa",
    "conv_weight": "aaaa",
    "conv_room": "ai",  # windows, which of them
    # channels.cpp: two operands, result, windows
    "channel_conv": "aaaa",
    "channel_conv_input": "aaaa",
    "channel_conv_weight": "aaaa",
    # pooling.cpp: operands, result, windows
    "im2col": "aaa",
    "col2im": "aaa",
    "max_pool": "aaaad",
    "pool_scatter": "aaaa",
    "pool_gather": "aaaa",
    "window_sum": "aaa",
    "window_spread": "aaa",
    # optim.cpp: parameter, gradient, state, elements, numbers
    "adam": "aaaaan" + "d" * 8,
    "sgd": "aaan" + "d" * 5 + "ii",
    "sgd_many": "an" + "d" * 5 + "i",  # parameters, gradients and buffers in an array of objects, and how many of each
    "adagrad": "aaan" + "d" * 4,
    "rmsprop": "aaaaan" + "d" * 6,
    # blockwise.cpp: parameter, gradient, codes, their scales, elements, numbers
    "adam_in_blocks": "aaaaaan" + "d" * 8,
    "sgd_in_blocks": "aaaan" + "d" * 5 + "ii",
    "lion_in_blocks": "aaaan" + "d" * 5,
    "lion": "aaan" + "d" * 5,
}

# ``rl_<name>_bf16`` and ``rl_<name>_f16``: 16-bit floats as unsigned numbers.  halves.cpp: input, output, elements
HALVES: dict[str, str] = {"widen": "aan", "narrow": "aan"}

# ``rl_<name>_bf16``: as above, of bfloat16 numbers, computed in float32 and rounded once.
MAPS: dict[str, str] = {
    name: SIGNATURES[name]
    for name in (
        "exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu", "softplus", "sign", "hardswish",
        "silu_backward", "sigmoid_backward", "tanh_backward", "relu_backward", "relu_backward_mask", "gelu_backward",
        "softplus_backward", "hardswish_backward",
    )
}  # fmt: skip

# ``rl_<name>_bf16`` on processors that multiply such numbers, and ``rl_<name>_tiles_bf16`` on those that do so by tiles.  product.cpp,
# tiles.cpp: as `attention` above, in and out of bfloat16; and factors, row, result, panels; which are turned; batch, M, K, N
BFLOAT16: dict[str, str] = {
    "product": "aaaaaii" + "nnnn",
    "attention": "aaaaaaid",
    "attention_backward": "a" * 9 + "id",
}
TILES: dict[str, str] = {"leave": ""} | {f"{name}_tiles": letters for name, letters in BFLOAT16.items()}

# These return a size: the first index that lies outside, -1 where there is none; of `sgd_many`, how many triples were stepped
# before one that it is not for; of `conv_room`, bytes; of `leave`, 0 where it is given; of `multiply`, 1 where it
# was done.  The others return nothing.
CHECKING = frozenset({
    "gather_along", "add_along", "index_add_rows", "cross_entropy", "cross_entropy_backward", "sgd_many", "conv_room", "leave",
    "multiply",
})  # fmt: skip
