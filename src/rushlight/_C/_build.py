"""What PyTorch says of how it was built, and settings of compilers that are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import cpu

if TYPE_CHECKING:
    from collections.abc import Callable

# How the names begin that are `torch._C`'s.
LEADS = ("has_", "GLIBCXX", "get_", "jit_", "debug_", "set_")
has_lapack = has_spectral = has_openmp = True
has_cuda = has_mkl = has_mkldnn = has_mps = has_xpu = has_kleidiai = False
_has_cuda = _has_cudnn = _has_cusparselt = _has_magma = _has_mkldnn = _has_mps = _has_xpu = False
_GLIBCXX_USE_CXX11_ABI = True


def _get_cpu_capability() -> str:
    """The instruction set that the processor offers: "AVX512", "AVX2" or "DEFAULT"."""
    return {4: "AVX512", 3: "AVX2"}.get(cpu.level(), "DEFAULT")


def _accepted(name: str) -> Callable[..., Any]:
    """A setting of a compiler: accepted, without effect."""

    def setting(*args: object) -> bool:
        return False

    setting.__name__ = name
    return setting


# What asks for a setting is answered with False, its value.
for _name in """_debug_get_fusion_group_inlining _debug_set_autodiff_subgraph_inlining _debug_set_fusion_group_inlining
        _get_graph_executor_optimize _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu _jit_get_inline_everything_mode
        _jit_get_te_must_use_llvm_cpu _jit_get_tracer_state_warn _jit_override_can_fuse_on_cpu
        _jit_override_can_fuse_on_cpu_legacy _jit_override_can_fuse_on_gpu _jit_set_emit_hooks
        _jit_set_inline_everything_mode _jit_set_num_profiled_runs _jit_set_nvfuser_enabled _jit_set_nvfuser_guard_mode
        _jit_set_profiling_executor _jit_set_profiling_mode _jit_set_symbolic_shapes_test_mode
        _jit_set_te_must_use_llvm_cpu _jit_set_texpr_fuser_enabled _jit_set_tracer_state_warn
        _jit_symbolic_shapes_test_mode_enabled _jit_texpr_fuser_enabled _set_graph_executor_optimize
        _set_math_sdp_allow_fp16_bf16_reduction _set_print_stack_traces_on_fatal_signal""".split():
    globals()[_name] = _accepted(_name)
