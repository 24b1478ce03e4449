"""Utilities: data loading, weak dictionaries, hook handles, checkpointing."""

from __future__ import annotations

from typing import Any

_MODULES = ("_pytree", "benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks", "weak")
_ROOMS = ("cpp_extension", "flop_counter", "module_tracker", "tensorboard")


def set_module(obj: object, mod: object) -> None:
    """Say that an object is of another module, by name.  Raises TypeError for a name that is no string."""
    if not isinstance(mod, str):
        raise TypeError(f"set_module(): argument 'mod' must be str, not {type(mod).__name__}")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first asked for."""
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"rushlight.compat.rooms.{name}")
    if name in ("collect_env", "serialization"):
        import importlib

        return importlib.import_module(f"rushlight.compat.{name}")
    if name == "swap_tensors":
        from rushlight.engine.swapping import swap_tensors

        return swap_tensors
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
