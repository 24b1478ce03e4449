"""``torch.backends.opt_einsum``: the order of products inside ``einsum``."""

from contextlib import AbstractContextManager
from typing import Any

from rushlight.compat.backends import _settings

__all__ = ["enabled", "flags", "get_opt_einsum", "is_available", "set_flags", "strategy"]

enabled: bool = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package opt_einsum chooses the order: no."""
    return False


def get_opt_einsum() -> Any:
    """The package: None."""
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]:
    """Sets whether the package chooses, and how; what was set before.  Raises ValueError for True, or a strategy."""
    if _enabled or _strategy is not None:
        raise ValueError(
            "opt_einsum does not choose the order of products here, so it can neither be enabled nor given a strategy"
        )
    return _settings.changed(__name__, {"enabled": _enabled, "strategy": _strategy})


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]:
    """Sets them inside a ``with`` block."""
    former = set_flags(enabled, strategy)
    set_flags(*former)
    return _settings.changed_flags(__name__, {"enabled": enabled, "strategy": strategy})
