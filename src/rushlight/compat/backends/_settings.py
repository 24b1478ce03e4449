"""Modules whose settings are checked when they are assigned: kept, asked for, and without effect on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from rushlight.compat import functions

__all__ = ["Precision", "changed", "changed_flags", "choice", "flag", "plain", "precision", "with_settings"]


def with_settings(module: str, **settings: property) -> None:
    """Let attributes of a module, which is being loaded, be these properties."""
    sys.modules[module].__class__ = type("Settings", (ModuleType,), settings)


_locked: list[bool] = [False]


def lock() -> None:
    """Let settings be assigned within `changed_flags` alone from now on."""
    _locked[0] = True


def _refuse_locked(module: object) -> None:
    """Raise RuntimeError where a setting may not be assigned as it is."""
    if _locked[0]:
        name = str(getattr(module, "__name__", module))
        raise RuntimeError(
            f"not allowed to set {name} flags after disable_global_flags: the context manager flags() sets them for a while"
        )


def _setting(value: object, check: Callable[[Any], Any]) -> property:
    kept = [value]

    def assign(module: object, given: object) -> None:
        _refuse_locked(module)
        kept[0] = check(given)

    return property(lambda module: kept[0], assign)


def plain(value: Any) -> property:
    """A setting that takes anything."""
    return _setting(value, lambda given: given)


def flag(value: bool, setter: str) -> property:
    """A setting that is True or False.  setter: PyTorch's name of what sets it, for the RuntimeError about anything else."""

    def check(given: object) -> bool:
        if not isinstance(given, bool):
            raise RuntimeError(f"{setter} expects a bool, but got {type(given).__name__}")
        return given

    return _setting(value, check)


def choice(value: str, choices: tuple[str, ...], what: str) -> property:
    """A setting that is one of several words.  what: it, for the RuntimeError about another one."""

    def check(given: object) -> Any:
        if given not in choices:
            raise RuntimeError(f"Unknown {what}: {given}. Expected one of: {', '.join(choices)}")
        return given

    return _setting(value, check)


def changed(module: str, given: dict[str, Any]) -> tuple[Any, ...]:
    """Assign the settings of a module that are given (None: not); what they were, in this order."""
    room = sys.modules[module]
    former = tuple(getattr(room, name) for name in given)
    for name, value in given.items():
        if value is not None:
            setattr(room, name, value)
    return former


@contextmanager
def changed_flags(module: str, given: dict[str, Any]) -> Iterator[None]:
    """Assign them inside a ``with`` block."""
    former = _let(module, given)
    try:
        yield
    finally:
        _let(module, dict(zip(given, former, strict=True)))


def _let(module: str, given: dict[str, Any]) -> tuple[Any, ...]:
    """As `changed`, also where settings are locked."""
    locked, _locked[0] = _locked[0], False
    try:
        return changed(module, given)
    finally:
        _locked[0] = locked


# Precision of float32 -----------------------------------------------------------------------------

# By backend and operation; "default" is "tf32" that gives way to what is said of all operations.
_PRECISION = {
    ("generic", "all"): "none", ("cuda", "all"): "none", ("cuda", "matmul"): "none", ("cuda",
    "conv"): "default", ("cuda", "rnn"): "default", ("mkldnn", "matmul"): "none", ("mkldnn", "conv"): "none",
    ("mkldnn", "rnn"): "none",
}  # fmt: skip
_CUDA = ("none", "ieee", "tf32")


def _precision_of(backend: str, op: str) -> str:
    own = _PRECISION.get((backend, op), "none")
    if own not in ("none", "default"):
        return own
    above = next(
        (p for p in (_PRECISION.get((backend, "all"), "none"), _PRECISION["generic", "all"]) if p != "none"), ""
    )
    if backend == "cuda" and above not in ("", *_CUDA):
        return "none"
    return above or ("tf32" if own == "default" else "none")


def _set_precision(backend: str, op: str, given: str) -> None:
    if given not in (*_CUDA, "bf16"):
        raise RuntimeError(f"Unknown precision: {given}")
    if backend == "cuda" and given not in _CUDA:
        raise RuntimeError(f"backend '{backend}' does not support precision '{given}'")
    # What is said of all of oneDNN's operations is said of all backends, as in PyTorch.
    _PRECISION["generic" if (backend, op) == ("mkldnn", "all") else backend, op] = given


def precision(backend: str, op: str = "all") -> property:
    """The setting ``fp32_precision``: "none", "ieee", "tf32", and except for CUDA "bf16".

    What was set for one operation goes before what was set for all of a backend, and that before what was set for all.
    """
    return property(lambda owner: _precision_of(backend, op), lambda owner, given: _set_precision(backend, op, given))


class Precision:
    """The settings of one kind of operation.  backend: "cuda" or "mkldnn"; op: "matmul", "conv", "rnn"."""

    def __init__(self, backend: str, op: str):
        self._place = (backend, op)

    @property
    def fp32_precision(self) -> str:
        """The precision that float32 may be lowered to."""
        return _precision_of(*self._place)

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _set_precision(*self._place, value)


def _follow(precision: str) -> None:
    """What `torch.set_float32_matmul_precision` says is said of products in both backends."""
    _PRECISION["cuda", "matmul"] = "ieee" if precision == "highest" else "tf32"
    _PRECISION["mkldnn", "matmul"] = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision]


functions.followers.append(_follow)
if functions.get_float32_matmul_precision() != "highest":
    _follow(functions.get_float32_matmul_precision())
