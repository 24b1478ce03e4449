"""``torch.backends.cudnn`` where there is no cuDNN: its settings are kept and change nothing."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.basics.dtypes import float16, float32, float64
from rushlight.compat.backends import _settings

__all__ = ["CUDNN_TENSOR_DTYPES", "allow_tf32", "benchmark", "benchmark_limit", "conv", "depthwise_kernel",
           "deterministic", "enabled", "flags", "fp32_precision", "is_acceptable", "is_available", "rnn", "set_flags",
           "version"]  # fmt: skip

CUDNN_TENSOR_DTYPES = {float16, float32, float64}
enabled: bool
benchmark: bool
benchmark_limit: int | None
deterministic: bool
allow_tf32: bool
depthwise_kernel: str
fp32_precision: str
conv, rnn = _settings.Precision("cuda", "conv"), _settings.Precision("cuda", "rnn")


def _allow(module: object, given: object) -> None:
    if not isinstance(given, bool):
        raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(given).__name__}")
    conv.fp32_precision = rnn.fp32_precision = "tf32" if given else "none"


_settings.with_settings(
    __name__,
    enabled=_settings.flag(True, "set_enabled_cudnn"),
    benchmark=_settings.flag(False, "set_benchmark_cudnn"),
    benchmark_limit=_settings.plain(None),
    deterministic=_settings.flag(False, "set_deterministic_cudnn"),
    allow_tf32=property(lambda module: conv.fp32_precision == "tf32", _allow),
    depthwise_kernel=_settings.choice("auto", ("auto", "cudnn", "native"), "cuDNN depthwise kernel mode"),
    fp32_precision=_settings.precision("cuda"),
)


def is_available() -> bool:
    """Whether cuDNN is there: no."""
    return False


def version() -> int | None:
    """cuDNN's version: None."""
    return None


def is_acceptable(tensor: object) -> bool:
    """Whether cuDNN computes with a tensor: no."""
    return False


def _named(
    enabled: object,
    benchmark: object,
    benchmark_limit: object,
    deterministic: object,
    allow_tf32: object,
    fp32_precision: object,
    depthwise_kernel: object,
) -> dict[str, Any]:
    return {"enabled": enabled, "benchmark": benchmark, "benchmark_limit": benchmark_limit, "deterministic": deterministic,
            "allow_tf32": allow_tf32, "fp32_precision": fp32_precision, "depthwise_kernel": depthwise_kernel}  # fmt: skip


def set_flags(_enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
              _deterministic: bool | None = None, _allow_tf32: bool | None = None, _fp32_precision: str | None = "none",
              _depthwise_kernel: str | None = None) -> tuple[Any, ...]:  # fmt: skip
    """Sets the settings that are given; what all of them were."""
    given = _named(
        _enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision, _depthwise_kernel
    )
    return _settings.changed(__name__, given)


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> AbstractContextManager[None]:
    """Sets the settings inside a ``with`` block and restores them after it."""
    given = _named(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision, depthwise_kernel)
    return _settings.changed_flags(__name__, given)
