"""Names at the top of torch that packages ask for in passing."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rushlight.amp import GradScaler
from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.dispatch.named import linalg
from rushlight.futures import Future
from rushlight.overrides import handle_torch_function, has_torch_function
from rushlight.tensor import Tensor

__all__ = ["Future", "GradScaler", "frobenius_norm", "get_deterministic_debug_mode", "get_device_module", "nuclear_norm",
           "set_deterministic_debug_mode"]  # fmt: skip

_MODES = {"default": 0, "warn": 1, "error": 2}


def _assert(condition: Any, message: str) -> Any:
    """`assert condition, message` as a function, for code that is traced.  Raises AssertionError.

    A condition that overrides functions, a proxy of torch.fx say, is asked instead.
    """
    if has_torch_function((condition,)):
        return handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error": what `use_deterministic_algorithms` says in two arguments.

    Raises TypeError for what is neither an int nor a string, RuntimeError for another of these.
    """
    from rushlight.compat.functions import use_deterministic_algorithms

    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode: expected 0, 1, 2, 'default', 'warn' or 'error', got {debug_mode!r}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """What `set_deterministic_debug_mode` has set: 0, 1 or 2."""
    from rushlight.compat import functions

    if not functions.are_deterministic_algorithms_enabled():
        return 0
    return 1 if functions.is_deterministic_algorithms_warn_only_enabled() else 2


def get_device_module(device: device | str | int | None = None) -> ModuleType:
    """The module torch.cpu or torch.cuda of a device, by default that of the CPU.

    Raises RuntimeError for a device without one.
    """
    kind = "cpu" if device is None else str(device).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module: torch has no module for the device {device!r}, only cpu and cuda")
    return importlib.import_module(f"rushlight.{kind}")


def nuclear_norm(input: Tensor, dim: tuple[int, ...] = (-2, -1), keepdim: bool = False) -> Any:
    """The sum of the singular values.  (*, N, M) -> (*).  Deprecated: use torch.linalg.matrix_norm(input, "nuc")."""
    warn("torch.nuclear_norm is deprecated: use torch.linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    return linalg.matrix_norm(input, "nuc", tuple(dim), keepdim)


def frobenius_norm(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False) -> Any:
    """The root of the sum of squares over `dim`.  Deprecated: use torch.linalg.vector_norm."""
    warn("torch.frobenius_norm is deprecated: use torch.linalg.vector_norm(A, 2, dim, keepdim)")
    return linalg.vector_norm(input, 2, dim, keepdim)
