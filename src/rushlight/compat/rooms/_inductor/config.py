"""Settings of PyTorch's compiler: kept, without effect.  They begin with PyTorch's values."""

from types import SimpleNamespace
from typing import Any

from rushlight._dynamo.settings import patcher

compile_threads = 1
coordinate_descent_search_radius = 1
fx_graph_remote_cache: bool | None = None
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
globals().update(
    dict.fromkeys(
        (
            "allow_buffer_reuse epilogue_fusion fx_graph_cache implicit_fallbacks layout_optimization pattern_matcher reorder_for_locality shape_padding "
            "size_asserts split_reductions use_mixed_mm"
        ).split(),
        True,
    )
)
globals().update(
    dict.fromkeys(
        (
            "benchmark_kernel conv_1x1_as_mm coordinate_descent_check_all_directions coordinate_descent_tuning cpp_wrapper dce debug emulate_precision_casts "
            "fallback_random force_disable_caches force_fuse_int_mm_with_mul freezing max_autotune max_autotune_gemm max_autotune_pointwise permute_fusion "
            "reorder_for_compute_comm_overlap verbose_progress"
        ).split(),
        False,
    )
)

aot_inductor, cpp, cuda, trace, triton = (SimpleNamespace() for _ in range(5))  # of parts of it
patch: Any = patcher(globals())
