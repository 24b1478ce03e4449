"""Settings of what compiles: kept, without effect.  They begin with PyTorch's values."""

from rushlight._dynamo.settings import patcher

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
repro_level = 2
optimize_ddp: bool | str = True
numpy_default_float = "float64"
reorderable_logging_functions: set[object] = set()
globals().update(
    dict.fromkeys(
        (
            "assume_static_by_default automatic_dynamic_shapes capture_func_transforms dynamic_shapes force_nn_module_property_static_shapes "
            "force_parameter_static_shapes guard_nn_modules inline_inbuilt_nn_modules log_compilation_metrics raise_on_ctx_manager_usage "
            "report_guard_failures skip_nnmodule_hook_guards trace_numpy"
        ).split(),
        True,
    )
)
globals().update(
    dict.fromkeys(
        (
            "allow_ignore_mark_dynamic allow_rnn allow_unspec_int_on_nn_module capture_dynamic_output_shape_ops capture_scalar_outputs "
            "compiled_autograd disable do_not_emit_runtime_asserts error_on_recompile fail_on_cache_limit_hit fail_on_recompile_limit_hit "
            "skip_fwd_side_effects_in_bwd_under_checkpoint specialize_float specialize_int suppress_errors verbose"
        ).split(),
        False,
    )
)

patch = patcher(globals())
