"""What PyTorch does with names in another way than with most: facts about its interface that nothing here follows from."""

FUNCTIONAL = "nn.functional"

# Functions without tensors to ask: modes are, and what stands for a size, a number or a dtype, a proxy of torch.fx say.
FACTORIES = frozenset(
    "as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fftfreq from_numpy "
    "frombuffer full hamming_window hann_window kaiser_window linspace logspace ones rand randint randn randperm range "
    "rfftfreq scalar_tensor tensor tril_indices triu_indices zeros".split()
)
# Those whose first argument is data, whatever it is.
TAKES_DATA = frozenset({"as_tensor", "asarray", "tensor"})
# Functions that ask nobody.
SILENT = frozenset(
    "broadcast_shapes can_cast from_dlpack get_default_device get_rng_state initial_seed is_storage is_tensor manual_seed "
    "promote_types seed set_default_device set_default_tensor_type set_printoptions set_rng_state to_dlpack "
    "typename".split()
)
# What is asked or set of the whole library, files, and classes: nothing of them is a function of tensors.
SETTINGS = frozenset(
    "are_deterministic_algorithms_enabled clear_autocast_cache compile cond device dtype enable_grad finfo fork from_file "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_dtype get_deterministic_debug_mode get_device_module "
    "get_float32_matmul_precision get_num_interop_threads get_num_threads iinfo inference_mode is_anomaly_check_nan_enabled "
    "is_anomaly_enabled is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled "
    "is_grad_enabled is_inference_mode_enabled is_warn_always_enabled layout load memory_format no_grad qscheme save "
    "set_anomaly_enabled set_autocast_cache_enabled set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal "
    "set_grad_enabled set_num_interop_threads set_num_threads set_warn_always thread_safe_generator use_deterministic_algorithms vmap "
    "wait".split()
)
# Methods and attributes that ask nobody: what makes objects, and what Python or the engine itself calls.
# Those that classes can override, and that PyTorch lists among those which none can: some of their forms take numbers alone.
UNLISTED = frozenset({"torch.Tensor.__iter__", "torch.arange", "torch.normal", "torch.result_type"})
SILENT_METHODS = frozenset(
    "__new__ __init_subclass__ __class_getitem__ __hash__ __copy__ __dir__ __getattr__ __setattr__ __torch_function__ as_subclass "
    "_add_hook _weak _bump_version _refresh _typed_storage".split()
)
# Functions that PyTorch has in Python: plain tensors are among the types that they hand on, and keywords are never None.
PYTHON = {
    "": frozenset(
        "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum lu meshgrid "
        "norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index".split()
    ),
    "autograd": frozenset({"grad"}),
    "Tensor": frozenset(
        "__array__ __array_wrap__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__ __format__ __ipow__ "
        "__len__ __pow__ __rdiv__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ "
        "__rrshift__ __rsub__ __rtruediv__ backward dim_order is_shared istft lu norm register_hook "
        "register_post_accumulate_grad_hook resize resize_as share_memory_ split stft storage storage_type unique "
        "unique_consecutive".split()
    ),
}
# Composed functions that find out themselves what is no tensor, with no look at it before: those that are called most.
NOTICING = frozenset({"add", "sub", "cat", "stack"})
# Functions of nn.functional that PyTorch has in C++ and that are composed here; those declared as operators are in C++ too.
FUNCTIONAL_NATIVE = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle cosine_similarity linear one_hot "
    "pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu scaled_dot_product_attention softshrink".split()
).union(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))
# Declared ones that PyTorch has in Python.
FUNCTIONAL_PYTHON = frozenset({"softsign", "tanhshrink"})
# Those in C++ that are the functions of torch itself.
SHARED = FUNCTIONAL_NATIVE.union({"hardshrink"}) - frozenset(
    "avg_pool2d avg_pool3d linear one_hot scaled_dot_product_attention softshrink".split()
)

# Python's operators by the method that they are: what an override is called with.
METHOD_OF = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__div__": "div",
    "__idiv__": "div_", "__mod__": "remainder", "__imod__": "remainder_", "__matmul__": "matmul", "__neg__": "neg",
    "__pos__": "positive", "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne",
    "__ifloordiv__": "floor_divide_",
}  # fmt: skip
# The names that the others say they have, where these are not their own.
SHOWN = {"__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__"}
# Operators of two operands: a TypeError of what was asked leaves the operation to the other operand.
BINARY = frozenset(f"__{way}{name}__" for way in ("", "r", "i") for name in (
    "add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)) | {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}  # fmt: skip
