"""rushlight: automatic differentiation with PyTorch's interface, in Python on NumPy, whose product is memory.

>>> import rushlight as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> (x ** 2).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

import importlib
import sys
import warnings as _warnings
from typing import TYPE_CHECKING, Any

from rushlight.backends import blas as _blas
from rushlight.basics.collecting import paused as _paused

_blas.prepare()  # before NumPy loads its BLAS
# As in PyTorch, 1 / 0 is inf without a warning. Only NumPy calls made by this package are silent, not the user's own.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")

with _paused():  # the searches for garbage among what an import makes would take a fifth of its time, and find none
    from rushlight import autograd, ops
    from rushlight.absent import finder as _finder
    from rushlight.absent.reasons import TYPES as _TYPES
    from rushlight.autograd import tensor_methods as _tensor_methods  # noqa: F401
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import ALIASES as _DTYPE_ALIASES
    from rushlight.basics.dtypes import ALL as _DTYPES
    from rushlight.basics.dtypes import NAMED as _NAMED_DTYPES
    from rushlight.basics.dtypes import dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
    from rushlight.basics.schemes import SCHEMES as _SCHEMES
    from rushlight.basics.schemes import qscheme
    from rushlight.basics.size import Size
    from rushlight.dispatch.registry import NAMESPACES as _NAMESPACES
    from rushlight.engine.modes import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from rushlight.generator import Generator, default_generator
    from rushlight.kernels import allocator as _allocator
    from rushlight.overrides.attach import attach as _attach
    from rushlight.tensor import Tensor, layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided  # noqa: F401
    from rushlight.version import __version__

    for _public in (Tensor, Size, Generator, device, dtype, layout, finfo, iinfo, qscheme):
        _public.__module__ = "rushlight"  # where they are known
    globals().update({d.name: d for d in (*_DTYPES, *_NAMED_DTYPES)}, **_DTYPE_ALIASES, **{s.name: s for s in _SCHEMES})
    _attach(_NAMESPACES, autograd)  # before anything takes a function from there
    globals().update(_NAMESPACES[""])
    _allocator.install(build=False)  # so that all memory is counted; the kernels may have to be compiled first

# Rooms that are loaded when they are first asked for.
for _room in ("backends", "ops"):  # `torch.backends` and `torch.ops` are not the rooms of these names
    globals().pop(_room, None)
_LAZY = {"__config__": "rushlight.compat.config", "backends": "rushlight.compat.backends",
         "torch_version": "rushlight.compat.torch_version", "ops": "rushlight.library.namespaces",
         "_ops": "rushlight.library.operators"}  # fmt: skip
_LAZY["__future__"] = "rushlight.nn.base.conversion"
_LAZY |= {
    name: f"rushlight.compat.rooms.{name}"
    for name in (
        "_functorch",
        "_guards",
        "_higher_order_ops",
        "_inductor",
        "_jit_internal",
        "_logging",
        "_prims_common",
        "_subclasses",
        "_tensor",
        "_tensor_str",
        "_utils",
        "export",
        "mps",
        "mtia",
        "quasirandom",
        "xpu",
    )
}
_LAZY |= {
    name: f"rushlight.compat.rooms.private.{name}"
    for name in (
        "_VF",
        "_compile",
        "_dispatch",
        "_library",
        "_linalg_utils",
        "_lobpcg",
        "_lowrank",
        "_prims",
        "_refs",
        "_utils_internal",
        "_vmap_internals",
        "_weights_only_unpickler",
    )
}
_LAZY["quantization"] = "rushlight.ao.quantization"
_LAZY["functional"] = "rushlight.compat.rooms.functional"
_ROOMS = frozenset({"sparse", "nn", "optim", "utils", "func", "distributed", "distributions", "serialization",
                    "models", "memory", "stores", "viz", "testing", "linalg", "special", "fft", "signal", "cuda",
                    "cpu", "random", "kernels", "version", "datasets", "profiler", "amp", "jit", "hub", "masked",
                    "monitor", "nested", "multiprocessing", "overrides", "types", "compiler", "accelerator",
                    "library", "futures", "_C", "_dynamo", "ao", "fx", "onnx"})  # fmt: skip


# Functions that are loaded when they are first asked for.
_FUNCTIONS = {"autocast": "rushlight.amp", "load": "rushlight.serialization", "save": "rushlight.serialization",
              "vmap": "rushlight.func"}  # fmt: skip
_FUNCTIONS |= dict.fromkeys(("is_anomaly_enabled", "is_anomaly_check_nan_enabled", "set_anomaly_enabled"),
                            "rushlight.autograd.anomaly_mode")  # fmt: skip
_FUNCTIONS |= dict.fromkeys(
    ("clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
     "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled"),
    "rushlight.amp",
)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(("SymBool", "SymFloat", "SymInt"), "rushlight.compat.placeholders")
_FUNCTIONS |= dict.fromkeys(("Event", "Stream"), "rushlight.compat.streams")
_FUNCTIONS |= dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "rushlight.serialization.records")
_FUNCTIONS |= {f"{kind}Type": "rushlight.compat.placeholders" for kind in _TYPES.split()}
_FUNCTIONS |= dict.fromkeys(("ScriptFunction", "ScriptModule", "fork", "wait"), "rushlight.jit")
_FUNCTIONS |= dict.fromkeys(("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor"), "rushlight.sparse.construct",)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(
    ("dsmm", "hsmm", "hspmm", "native_norm", "saddmm", "smm", "sspaddmm"), "rushlight.sparse.older"
)
_FUNCTIONS |= dict.fromkeys(("affine_grid_generator", "binary_cross_entropy_with_logits", "from_file", "gru",
    "has_cuda", "has_cudnn", "has_lapack", "has_mkl", "has_mps", "has_openmp", "has_spectral",
    "is_warn_always_enabled", "lstm", "norm_except_dim", "rnn_relu", "rnn_tanh", "set_warn_always"),
    "rushlight.compat.beneath",)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), "rushlight.ops.python.removed")
_FUNCTIONS["thread_safe_generator"] = "rushlight.random"
_FUNCTIONS |= dict.fromkeys(("AcceleratorError", "OutOfMemoryError"), "rushlight.cuda")
_FUNCTIONS["jagged"] = "rushlight.tensor"
_FUNCTIONS |= dict.fromkeys(
    ("_nested_from_padded", "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned"),
    "rushlight.nested.build",
)
_FUNCTIONS["Tag"] = "rushlight.library.tags"
_FUNCTIONS |= dict.fromkeys(("gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"), "rushlight.nn.recurrent")
_FUNCTIONS |= dict.fromkeys(
    ("Future", "GradScaler", "_assert", "frobenius_norm", "get_deterministic_debug_mode", "get_device_module",
     "nuclear_norm", "set_deterministic_debug_mode"),
    "rushlight.compat.names",
)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(
    ("_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
     "_check_tensor_all_with", "_check_type", "_check_value", "_check_with", "_convert_indices_from_coo_to_csr",
     "_convert_indices_from_csr_to_coo", "_shape_as_tensor", "legacy_contiguous_format", "sym_float", "sym_int", "sym_ite",
     "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"),
    "rushlight.compat.rooms.top",
)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(("_addmm_activation", "_compute_linear_combination", "_debug_has_internal_overlap",
    "_has_compatible_shallow_copy_type", "_int_mm", "_nnpack_available", "_scaled_mm", "_scaled_mm_v2",
    "_validate_sparse_coo_tensor_args", "_validate_sparse_compressed_tensor_args", "_validate_sparse_csr_tensor_args",
    "_validate_sparse_csc_tensor_args", "_validate_sparse_bsr_tensor_args", "_validate_sparse_bsc_tensor_args",
    "_weight_norm"), "rushlight.compat.rooms.inner",)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(
    ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"), "rushlight.amp.unscaling"
)
_FUNCTIONS["_disable_dynamo"] = "rushlight.compat.rooms.private._compile"
_FUNCTIONS |= dict.fromkeys(("_segment_reduce", "lobpcg", "segment_reduce"), "rushlight.compat.segments")
_FUNCTIONS |= dict.fromkeys(
    (
        f"{kind}Storage"
        for kind in (
            "",
            "BFloat16",
            "Bool",
            "Byte",
            "Char",
            "ComplexDouble",
            "ComplexFloat",
            "Double",
            "Float",
            "Half",
            "Int",
            "Long",
            "Short",
        )
    ),
    "rushlight.compat.rooms.storage",
)
_FUNCTIONS |= dict.fromkeys(("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_assert_scalar",
    "_assert_tensor_metadata", "_chunk_cat", "_convert_weight_to_int4pack_for_cpu", "_euclidean_dist", "_fft_c2c",
    "_fft_c2r", "_fft_r2c", "_grouped_mm", "_index_put_impl_", "_is_all_true", "_is_any_true", "_linalg_check_errors",
    "_linalg_det", "_linalg_eigh", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd", "_log_softmax",
    "_log_softmax_backward_data", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_prelu_kernel",
    "_safe_softmax", "_scaled_dot_product_flash_attention_for_cpu", "_softmax", "_softmax_backward_data",
    "_trilinear", "_unique", "_unique2", "_unsafe_index", "_unsafe_index_put", "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate", "_weight_int4pack_mm_for_cpu", "_weight_int8pack_mm"),
    "rushlight.library.aten",)  # fmt: skip
_FUNCTIONS |= dict.fromkeys(("cond", "while_loop"), "rushlight.compat.rooms._higher_order_ops.control_flow")
_FUNCTIONS |= dict.fromkeys(
    ("_dirichlet_grad", "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad"),
    "rushlight.ops.random.gamma_sample",
)
_FUNCTIONS |= dict.fromkeys(("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
                            "rushlight.signal.classic")  # fmt: skip
_FUNCTIONS |= dict.fromkeys(
    ("are_deterministic_algorithms_enabled", "compile", "get_float32_matmul_precision", "get_num_interop_threads",
     "get_num_threads", "is_deterministic_algorithms_warn_only_enabled", "set_float32_matmul_precision",
     "set_flush_denormal", "set_num_interop_threads", "set_num_threads", "set_vital", "use_deterministic_algorithms"),
    "rushlight.compat.functions",
)  # fmt: skip


if TYPE_CHECKING:
    from rushlight.stubs import functions as _functions
    from rushlight.stubs.functions import *  # type: ignore[no-redef]


if not TYPE_CHECKING:  # to a checker, a name that is in no list is an error

    def __getattr__(name: str) -> Any:
        """A name that is loaded when it is first asked for."""
        if name == "torch":  # PyTorch's own import of itself, which some write
            found = sys.modules[__name__]
        elif name.startswith("_foreach_"):
            found = getattr(importlib.import_module("rushlight.ops.python.foreach"), name)
        elif name in _FUNCTIONS:
            found = getattr(importlib.import_module(_FUNCTIONS[name]), name)
        elif name in _ROOMS or name in _LAZY:
            module = _LAZY.get(name, f"rushlight.{name}")
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:
                    raise
                raise AttributeError(f"module 'rushlight' has no attribute {name!r}") from None
        else:
            reasons = importlib.import_module("rushlight.absent.reasons")
            said = reasons.why("torch", name) if not name.startswith("__") else None
            told = f"module {__name__!r} has no attribute {name!r}"
            spelling = importlib.import_module("rushlight.basics.spelling")
            raise AttributeError(f"{told}: {said}" if said else spelling.Unknown(told, name, __dir__))
        globals()[name] = found
        return found


_finder.install()


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY, *_FUNCTIONS})


__all__ = ["Generator", "Size", "Tensor", "__version__", "autograd", "default_generator", "device", "dtype",
           "enable_grad", "finfo", "get_default_dtype", "iinfo", "inference_mode", "is_grad_enabled",
           "is_inference_mode_enabled", "layout", "no_grad", "ops", "promote_types", "set_default_dtype",
           "set_grad_enabled", "strided"]  # fmt: skip
# What `import *` brings: functions and dtypes as in PyTorch, and the rooms that every script names.
if TYPE_CHECKING:
    __all__ += _functions.__all__
else:
    __all__.extend(name for name in (*_NAMESPACES[""], *(d.name for d in _DTYPES), *_DTYPE_ALIASES) if name[0] != "_")
    __all__.extend(("load", "nn", "optim", "save"))
