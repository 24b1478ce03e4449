"""``torch.backends.mkldnn``: oneDNN, which rushlight does not use: its settings are kept and change nothing."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.compat.backends import _settings
from rushlight.compat.backends._verbose import Verbose

__all__ = ["allow_tf32", "conv", "deterministic", "enabled", "flags", "fp32_precision", "is_acl_available",
           "is_available", "matmul", "rnn", "set_flags", "verbose"]  # fmt: skip

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled: bool
deterministic: bool
allow_tf32: bool | None
fp32_precision: str
matmul, conv, rnn = (_settings.Precision("mkldnn", op) for op in ("matmul", "conv", "rnn"))
_settings.with_settings(
    __name__,
    enabled=_settings.flag(True, "set_enabled_mkldnn"),
    deterministic=_settings.flag(False, "set_deterministic_mkldnn"),
    allow_tf32=property(lambda module: None, _settings.flag(False, "_set_onednn_allow_tf32").fset),
    fp32_precision=_settings.precision("mkldnn"),
)


def is_available() -> bool:
    """Whether oneDNN is used: no, convolutions are rushlight's own."""
    return False


def is_acl_available() -> bool:
    """Whether Arm's Compute Library is used: no."""
    return False


def _named(enabled: object, deterministic: object, allow_tf32: object, fp32_precision: object) -> dict[str, Any]:
    return {
        "enabled": enabled,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }


def set_flags(_enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None,
              _fp32_precision: str | None = "none") -> tuple[Any, ...]:  # fmt: skip
    """Sets the settings that are given; what all of them were."""
    return _settings.changed(__name__, _named(_enabled, _deterministic, _allow_tf32, _fp32_precision))


def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> AbstractContextManager[None]:  # fmt: skip
    """Sets the settings inside a ``with`` block and restores them after it."""
    return _settings.changed_flags(__name__, _named(enabled, deterministic, allow_tf32, fp32_precision))


class verbose(Verbose):
    """Context manager that would have oneDNN print its calls: AssertionError, unless it is `VERBOSE_OFF`."""

    library = "MKLDNN"

    def __init__(self, level: int):
        self.asked = self.level = level
