"""``torch.backends``: questions about the libraries beneath are answered, settings are accepted.

The settings of cuDNN and CUDA change nothing on the CPU.  What rushlight itself computes with is in
``rushlight.backends``, and ``rushlight doctor`` prints it.
"""

from rushlight.compat.backends import (
    _settings,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    python_native,
    quantized,
)

__all__ = ["cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack",
           "openmp", "opt_einsum", "python_native", "quantized"]  # fmt: skip


def disable_global_flags() -> None:
    """Let settings of backends be assigned by their `flags()` alone from now on."""
    _settings.lock()


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return _settings._locked[0]


fp32_precision: str  # of all backends
_settings.with_settings(__name__, fp32_precision=_settings.precision("generic"))
