"""Utilities: data loading, weak dictionaries, hook handles, checkpointing."""

from __future__ import annotations

from rushlight.basics.lazily import lazily

# Modules that are imported when they are first asked for.
_MODULES = (
    *(f"{__name__}.{name}" for name in "_pytree benchmark checkpoint data deterministic dlpack hooks weak".split()),
    *(f"rushlight.compat.rooms.{name}" for name in "cpp_extension flop_counter module_tracker tensorboard".split()),
    "rushlight.compat.collect_env",
    "rushlight.compat.serialization",
)


def set_module(obj: object, mod: object) -> None:
    """Say that an object is of another module, by name.  Raises TypeError for a name that is no string."""
    if not isinstance(mod, str):
        raise TypeError(f"set_module(): argument 'mod' must be str, not {type(mod).__name__}")
    obj.__module__ = mod


__getattr__ = lazily(__name__, _MODULES, {"swap_tensors": "rushlight.engine.swapping"})
