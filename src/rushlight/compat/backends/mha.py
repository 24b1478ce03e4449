"""``torch.backends.mha``: whether attention may take another way in evaluation; there is one way here, so it changes nothing."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled: bool = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` was given last, True at first."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Kept, without effect."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
