"""What the declarations do not say of types, by name: parameters, results, results that depend on arguments."""

from __future__ import annotations

NUMBER = "Tensor | complex"
INTS = "int | Sequence[int]"
AXES = "int | Sequence[int] | None"
SEVERAL = "Tensor | Sequence[Tensor]"


def named(names: str, what: str) -> dict[str, str]:
    """The same type for each name."""
    return dict.fromkeys(names.split(), what)


# What a parameter takes whose declaration says Any, by its name.
PARAMETERS: dict[str, str] = {
    **named("input self weight target source src tensor tensor1 tensor2 A B batch1 batch2 mat mat1 mat2 vec vec1 vec2 input1 input2 "
            "input3 x1 x2 grid mask index condition anchor positive negative log_probs LU_data LU_pivots query key theta boundaries "
            "pivots LD LU tau real imag logits x y linear_weight M hub abs angle", "Tensor"),
    **named("bias running_mean running_var weights out fweights aweights offsets per_sample_weights window prepend append "
            "in_proj_weight in_proj_bias bias_k bias_v out_proj_bias attn_mask key_padding_mask q_proj_weight k_proj_weight "
            "v_proj_weight static_k static_v pos_weight linear_bias sorter gradient", "Tensor | None"),
    **named("other exponent value min max end start fill_value elements test_elements", NUMBER),
    **named("alpha beta p ord", "complex"),
    **named("dim axis dims", AXES),
    **named("size shape kernel_size stride padding dilation output_size output_padding normalized_shape sizes shifts split_sizes "
            "destination pad sections", INTS),
    **named("n N storage_offset divisor_override", "int | None"),
    **named("unbiased size_average", "bool | None"),
    **named("tensors matrices", "Sequence[Tensor]"),
    **named("rcond atol rtol tol", "float | Tensor | None"),
    "dtype": "dtype | None", "device": "device | str | int | None", "generator": "Generator | None",
    "memory_format": "memory_format | None", "layout": "layout | None", "norm": "str | None", "correction": "float | None",
    "q": "float | Tensor", "scale_factor": "float | Sequence[float] | None", "s": "Sequence[int] | None", "driver": "str | None",
    "reduce": "str | None", "indices": "Tensor | Sequence[int] | int", "names": "Sequence[str] | None",
}  # fmt: skip

# Parameters that mean something of their own in one function.
OWN: dict[tuple[str, str], str] = {
    **{(f"adaptive_{kind}_pool{n}d", "output_size"): "int | Sequence[int | None]" for kind in ("avg", "max") for n in (1, 2, 3)},
    **{(name, "weight"): "Tensor | None" for name in
       "cross_entropy nll_loss batch_norm layer_norm rms_norm group_norm instance_norm binary_cross_entropy native_batch_norm "
       "binary_cross_entropy_with_logits multi_margin_loss multilabel_soft_margin_loss mse_loss l1_loss".split()},
    **{(f"atleast_{n}d", "tensors"): SEVERAL for n in (1, 2, 3)},
    **{(name, "tensors"): SEVERAL for name in "meshgrid broadcast_tensors cartesian_prod block_diag".split()},
    **{(name, "value"): "complex | None" for name in "scatter scatter_ pad constant_pad_nd".split()},
    **{(name, "padding"): f"{INTS} | str" for name in "conv1d conv2d conv3d".split()},
    **{(name, "dtype"): "dtype | str | None" for name in "to type".split()},
    **{(name, "other"): "Tensor" for name in
       "cross dist dot expand_as inner kron matmul mm bmm reshape_as tensordot type_as vdot vecdot view_as".split()},
    ("movedim", "source"): INTS, ("moveaxis", "source"): INTS,
    ("where", "condition"): "Tensor", ("where", "other"): NUMBER,
    ("scalar_tensor", "s"): "complex", ("bernoulli", "p"): "float | None", ("bernoulli_", "p"): "float | Tensor",
    ("backward", "inputs"): SEVERAL + " | None", ("unflatten", "dim"): "int", ("view", "dtype"): "dtype | None", ("select", "index"): "int",
}  # fmt: skip

# Results of functions whose declaration does not say what a user gets; where it says Any, all others give a tensor.
RESULTS: dict[str, str] = {
    **named("broadcast_tensors split split_copy split_with_sizes split_with_sizes_copy chunk unbind unbind_copy tensor_split hsplit "
            "vsplit dsplit unsafe_split unsafe_chunk unsafe_split_with_sizes meshgrid gradient unravel_index", "tuple[Tensor, ...]"),
    **named("atleast_1d atleast_2d atleast_3d", "Any"),
    **named("var_mean std_mean native_dropout max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
            "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
            "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices", "tuple[Tensor, Tensor]"),
    **named("native_batch_norm native_group_norm native_layer_norm", "tuple[Tensor, Tensor, Tensor]"),
    **named("nonzero unique unique_consecutive max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d "
            "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d lu histogramdd multi_head_attention_forward "
            "item tolist type as_subclass size stride to_dlpack get_default_device storage_type register_hook "
            "register_post_accumulate_grad_hook wait_tensor", "Any"),
    "numpy": "ndarray[Any, Any]", "broadcast_shapes": "Size", "result_type": "dtype",
}  # fmt: skip

ALONG = "dim: int, keepdim: bool = ..."
# Signatures, behind the tensor itself, of functions whose result depends on their arguments, with its type.
OVERLOADS: dict[str, list[tuple[str, str]]] = {
    **{name: [("", "Tensor"), (ALONG, name), ("other: Tensor", "Tensor")] for name in ("max", "min")},
    **{name: [("", "Tensor"), (ALONG, name)] for name in ("median", "nanmedian")},
    "nonzero": [("", "Tensor"), ("*, as_tuple: Literal[False]", "Tensor"), ("*, as_tuple: Literal[True]", "tuple[Tensor, ...]")],
}  # fmt: skip
OF_FUNCTIONS: dict[str, list[tuple[str, str]]] = {
    "where": [("", "tuple[Tensor, ...]"), (f"input: {NUMBER}, other: {NUMBER}, *, out: Tensor | None = ...", "Tensor")],
}
OF_METHODS: dict[str, list[tuple[str, str]]] = {
    "size": [("dim: None = ...", "Size"), ("dim: int", "int")],
    "stride": [("dim: None = ...", "tuple[int, ...]"), ("dim: int", "int")],
    "type": [("dtype: None = ...", "str"), ("dtype: dtype | str | type, non_blocking: bool = ...", "Tensor")],
}
# The type of what `*args` are.
VARIADIC: dict[str, str] = {
    **named("view reshape expand permute repeat flip new_zeros_ tile", "int | Sequence[int]"),
    **named("zeros ones empty rand randn new_empty new_zeros new_ones", "int | Sequence[int]"),
    **named("meshgrid broadcast_tensors cartesian_prod block_diag atleast_1d atleast_2d atleast_3d", SEVERAL),
}
# Functions of matrices, whose classes of results are made at their first call.
FACTORIZATIONS = ("geqrf", "lu", "lu_unpack", "qr", "slogdet", "svd", "triangular_solve")
# Lines that a namespace has beside what is published there.
# What a class of tensors of one's own overrides or calls.
FOR_SUBCLASSES = """
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = ..., kwargs: Any = ...) -> Any: ...
""".strip("\n").splitlines()
ALSO = {"rushlight.special": [f"from rushlight.stubs.functions import {name} as {name}" for name in
                              ("log_softmax", "logsumexp", "softmax")]}  # fmt: skip
