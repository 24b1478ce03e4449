"""``torch.backends.miopen``: AMD's library, which rushlight does not use: its setting is kept and changes nothing."""

from contextlib import AbstractContextManager

from rushlight.compat.backends import _settings

__all__ = ["flags", "immediate", "set_flags"]

immediate: bool
_settings.with_settings(__name__, immediate=_settings.flag(False, "set_immediate_miopen"))


def set_flags(_immediate: bool | None = None) -> tuple[bool, ...]:
    """Sets it; what it was."""
    return _settings.changed(__name__, {"immediate": _immediate})


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """Sets it inside a ``with`` block."""
    return _settings.changed_flags(__name__, {"immediate": immediate})
