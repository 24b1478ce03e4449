"""``torch.backends.nnpack``: a library of convolutions, which rushlight does not use: its setting is kept and changes nothing."""

from contextlib import AbstractContextManager

from rushlight.compat.backends import _settings

__all__ = ["flags", "is_available", "set_flags"]

enabled: bool
_settings.with_settings(__name__, enabled=_settings.flag(True, "set_enabled_NNPACK"))


def is_available() -> bool:
    """Whether NNPACK is used: no, convolutions are rushlight's own."""
    return False


def set_flags(_enabled: bool) -> tuple[bool, ...]:
    """Sets whether it is used; what was set before."""
    return _settings.changed(__name__, {"enabled": _enabled})


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Sets it inside a ``with`` block."""
    return _settings.changed_flags(__name__, {"enabled": enabled})
