"""``torch.backends.cuda`` where there is no CUDA: its settings are kept and change nothing."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.naming import called
from rushlight.compat import functions
from rushlight.compat.backends import _settings
from rushlight.nn.attention import SDPAParams, SDPBackend, allowed, sdpa_kernel

__all__ = ["SDPAParams", "SDPBackend", "allow_fp16_bf16_reduction_math_sdp", "can_use_cudnn_attention",
           "can_use_efficient_attention", "can_use_flash_attention", "cuBLASModule", "cuFFTPlanCacheManager",
           "cudnn_sdp_enabled", "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
           "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed", "is_built",
           "is_ck_sdpa_available", "is_flash_attention_available", "math_sdp_enabled", "matmul",
           "mem_efficient_sdp_enabled", "preferred_blas_library", "preferred_linalg_library",
           "preferred_rocm_fa_library", "sdp_kernel"]  # fmt: skip


def is_built() -> bool:
    """Whether there is support for CUDA: no."""
    return False


# Products -----------------------------------------------------------------------------------------

_REDUCTIONS = {
    "allow_fp16_reduced_precision_reduction": [True, True],
    "allow_bf16_reduced_precision_reduction": [True, True],
}


class cuBLASModule:
    """Settings of products; the one instance is `matmul`.  Raises AttributeError for others."""

    def __getattr__(self, name: str) -> Any:
        if name in ("fp32_precision", "allow_tf32"):
            precision = _settings.Precision("cuda", "matmul").fp32_precision
            return precision if name == "fp32_precision" else precision == "tf32"
        if name == "allow_fp16_accumulation":
            return _accumulation[0]
        base, splits = name.removesuffix("_split_k"), name.endswith("_split_k")
        if base not in _REDUCTIONS:
            raise AttributeError(f"Unknown attribute {name}")
        return _REDUCTIONS[base][splits]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "fp32_precision":
            _settings.Precision("cuda", "matmul").fp32_precision = value
        elif name == "allow_tf32":
            functions.set_float32_matmul_precision("high" if value else "highest")
        elif name == "allow_fp16_accumulation":
            _accumulation[0] = value
        elif name in _REDUCTIONS:
            _REDUCTIONS[name] = _reductions(name, value)
        else:
            raise AttributeError(f"Unknown attribute {name}")


_accumulation = [False]
matmul = cuBLASModule()


def _reductions(name: str, value: object) -> list[bool]:
    """Whether sums may be rounded, and whether they may be split, from a bool or a pair."""
    if isinstance(value, bool):
        return [value, True]
    if not isinstance(value, (tuple, list)) or not all(isinstance(given, bool) for given in value):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)}")
    if len(value) > 1 and value[0] and not value[1]:
        raise RuntimeError("allow_splitk=False is not supported when reduced precision reductions are enabled")
    return [*value, True][:2]


# Libraries of choice ------------------------------------------------------------------------------


class _LinalgBackend(enum.Enum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(enum.Enum):
    Default = 0
    AOTriton = 1
    Ck = 2


_LINALG = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
_BLAS = {"default": _BlasBackend.Cublas, "cublas": _BlasBackend.Cublas, "hipblas": _BlasBackend.Cublas,
         "cublaslt": _BlasBackend.Cublaslt, "hipblaslt": _BlasBackend.Cublaslt, "ck": _BlasBackend.Ck}  # fmt: skip
_ROCM = {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck}
_NAMES = {
    _LinalgBackend.Cusolver: "cuSOLVER",
    _LinalgBackend.Magma: "MAGMA",
    _BlasBackend.Cublaslt: "cuBLASLt",
    _BlasBackend.Ck: "CK",
}


def _preferred(backend: object, choices: dict[str, Any]) -> Any:
    """The only one that there is.  Raises RuntimeError for another one that is asked for."""
    kind, first = type(choices["default"]), choices["default"]
    if isinstance(backend, str) and backend not in choices:
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(choices)}.")
    if not isinstance(backend, (str, kind, type(None))):
        raise RuntimeError("Unknown input value type.")
    asked = choices[backend] if isinstance(backend, str) else backend
    if asked is not None and asked is not first:
        name = _NAMES[asked]
        raise RuntimeError(f"Cannot set preferred backend to {name} if PyTorch has not been compiled with {name}.")
    return first


def preferred_linalg_library(backend: str | _LinalgBackend | None = None) -> _LinalgBackend:
    """Which library computes decompositions on a GPU: "default".  Raises RuntimeError for another one."""
    return _preferred(backend, _LINALG)  # type: ignore[no-any-return]


def preferred_blas_library(backend: str | _BlasBackend | None = None) -> _BlasBackend:
    """Which library computes products on a GPU: "cublas".  Raises RuntimeError for another one."""
    return _preferred(backend, _BLAS)  # type: ignore[no-any-return]


_rocm = [_ROCmFABackend.Default]


def preferred_rocm_fa_library(backend: str | _ROCmFABackend | None = None) -> _ROCmFABackend:
    """Which library computes attention on AMD's GPUs: kept, without effect."""
    if isinstance(backend, str) and backend not in _ROCM:
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(_ROCM)}.")
    if not isinstance(backend, (str, _ROCmFABackend, type(None))):
        raise ValueError(f"Unknown input value. Choose from: {', '.join(_ROCM)}.")
    if backend is not None:
        _rocm[0] = _ROCM[backend] if isinstance(backend, str) else backend
    return _rocm[0]


# Attention ----------------------------------------------------------------------------------------

_half_sums = [False]


def _bool(enabled: object) -> bool:
    """Raises RuntimeError for what is no bool."""
    if not isinstance(enabled, bool):
        raise RuntimeError(f"set_sdp_use_math expects a bool, but got {type(enabled).__name__}")
    return enabled


def _switch(backend: SDPBackend, name: str, what: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Two functions: one says whether attention may be computed in a way, the other is told."""

    def asked() -> bool:
        return allowed[backend]

    def told(enabled: bool) -> None:
        allowed[backend] = _bool(enabled)

    said = f"Whether {what} may be used: what `enable_{name}` or a context said last, True at first."
    kept = "Kept: there is one implementation of attention here.  Raises RuntimeError for what is no bool."
    return called(asked, f"{name}_enabled", said, __name__), called(told, f"enable_{name}", kept, __name__)


flash_sdp_enabled, enable_flash_sdp = _switch(SDPBackend.FLASH_ATTENTION, "flash_sdp", "flash attention")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch(
    SDPBackend.EFFICIENT_ATTENTION, "mem_efficient_sdp", "memory-efficient attention"
)
math_sdp_enabled, enable_math_sdp = _switch(SDPBackend.MATH, "math_sdp", "attention by plain operators")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch(SDPBackend.CUDNN_ATTENTION, "cudnn_sdp", "cuDNN's attention")


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention by plain operators may add in 16 bits: what was said last, False at first."""
    return _half_sums[0]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Kept: sums are in float32."""
    _half_sums[0] = _bool(enabled)


def is_flash_attention_available() -> bool:
    """Whether CUDA's flash attention is there: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether AMD's is: no."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's flash attention takes these tensors: no."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's memory-efficient attention takes these tensors: no."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN's attention takes these tensors: no."""
    return False


def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> AbstractContextManager[dict[str, Any]]:  # fmt: skip
    """Sets which implementations of attention may be used inside a ``with`` block, as `sdpa_kernel` does, which replaces it.

    A FutureWarning says so.  Raises AssertionError where none may.
    """
    warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
         "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.", FutureWarning)  # fmt: skip
    given = {SDPBackend.FLASH_ATTENTION: enable_flash, SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
             SDPBackend.MATH: enable_math, SDPBackend.CUDNN_ATTENTION: enable_cudnn}  # fmt: skip
    if not any(given.values()):
        raise AssertionError("sdp_kernel: at least one of the implementations has to be enabled")
    return sdpa_kernel([backend for backend, enabled in given.items() if enabled])


# Fourier transforms -------------------------------------------------------------------------------


class cuFFTPlanCacheManager:
    """Plans of Fourier transforms on GPUs, of which there are none: AssertionError for their number, RuntimeError for a device."""

    def __getitem__(self, given: Any) -> Any:
        place = device("cuda", given) if isinstance(given, int) else device(given)
        if place.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {place}")
        raise RuntimeError(
            f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {place.index or 0}"
        )

    def __getattr__(self, name: str) -> Any:
        if name in ("size", "max_size", "clear"):
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise AttributeError(name)


cufft_plan_cache = cuFFTPlanCacheManager()
