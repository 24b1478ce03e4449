"""Functions at the top of ``torch`` that set how it computes, where rushlight computes one way only."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from rushlight.backends import blas
from rushlight.basics.caller import warn
from rushlight.dispatch.options import fills

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_vital",
    "use_deterministic_algorithms",
]

F = TypeVar("F", bound=Callable[..., Any])
followers: list[Callable[[str], None]] = []  # told of the precision of products: `torch.backends`, once it is there
_settings: dict[str, Any] = {"matmul": "highest", "deterministic": False, "warn_only": False, "interop": 1}


@overload
def compile(model: None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None, mode: str | None = None,
            options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            isolate_recompiles: bool = False, shapes_spec: object = None) -> Callable[[F], F]: ...  # fmt: skip


@overload
def compile(model: F, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None, mode: str | None = None,
            options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            isolate_recompiles: bool = False, shapes_spec: object = None) -> F: ...  # fmt: skip


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: object = None,
) -> Any:
    """``model``, which runs as it is: there is nothing to compile to.  Without a model, a decorator that does the same.

    A module is in an ``OptimizedModule``, as in PyTorch: names of its parameters begin with ``_orig_mod.``.  With
    ``disable``, ``model`` itself.  Raises RuntimeError for modes and backends that do not exist.

    >>> import rushlight as torch
    >>> @torch.compile(mode="max-autotune")
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    >>> [*torch.compile(torch.nn.Linear(1, 1)).state_dict()]
    ['_orig_mod.weight', '_orig_mod.bias']
    """
    from rushlight._dynamo.eval_frame import compiled

    if model is None:
        return lambda given: compile(given, backend=backend, mode=mode, options=options, disable=disable)
    return model if disable else compiled(model, backend, mode, options)


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts "highest", "high" and "medium" and computes in full float32 with each of them."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"precision must be 'highest', 'high' or 'medium', got {precision!r}")
    _settings["matmul"] = precision
    for follow in followers:
        follow(precision)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given last, "highest" at first."""
    return str(_settings["matmul"])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Have memory that would hold anything filled: see `torch.utils.deterministic`.

    Otherwise nothing changes: on the CPU every operator gives the same bits for the same inputs and number of threads.
    Raises TypeError for what is no bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _settings.update(deterministic=bool(mode), warn_only=bool(warn_only))
    fills["deterministic"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was given last, False at first."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``warn_only`` was given to `use_deterministic_algorithms`."""
    return bool(_settings["warn_only"])


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers below the smallest normal one could be made 0: no, as on a processor that cannot do so."""
    return False


def check_count(name: str, count: object) -> None:
    """Raise RuntimeError for what is no positive int."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"{name} expects a positive integer, got {count}")


def set_num_threads(count: int) -> None:
    """How many threads an operator may use, in the matrix products and in the native kernels.

    Raises RuntimeError unless ``count`` is a positive int.
    """
    check_count("set_num_threads", count)
    for setter in _thread_setters():
        setter(int(count))


def get_num_threads() -> int:
    """How many threads an operator may use."""
    from rushlight import kernels

    return int(kernels.get_num_threads())


def _thread_setters() -> list[Callable[[int], Any]]:
    from rushlight import kernels

    return [kernels.set_num_threads, blas.set_num_threads]


def set_num_interop_threads(count: int) -> None:
    """Accepted with a warning: operators run one after the other, there are no threads between them."""
    check_count("set_num_interop_threads", count)
    _settings["interop"] = count
    warn("set_num_interop_threads has no effect: operators run one after the other")


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was given last, 1 at first."""
    return int(_settings["interop"])


def set_vital(vital: str, attr: str, value: str) -> None:
    """Nothing, with a warning, as in PyTorch: loaders that libraries write still call it."""
    warn("'set_vital' is deprecated, please do not call")
