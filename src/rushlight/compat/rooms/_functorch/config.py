"""Settings of the compiler's differentiation: kept, without effect.  They begin with PyTorch's values."""

from rushlight._dynamo.settings import patcher

activation_memory_budget = 1.0
globals().update(
    dict.fromkeys(
        "cse donated_buffer enable_autograd_cache static_weight_shapes treat_parameters_as_free_to_save".split(), True
    )
)
globals().update(
    dict.fromkeys(
        (
            "aggressive_recomputation debug_assert debug_partitioner fake_tensor_propagate_real_tensors functionalize_rng_ops recompute_views "
            "strict_autograd_cache"
        ).split(),
        False,
    )
)

patch = patcher(globals())
