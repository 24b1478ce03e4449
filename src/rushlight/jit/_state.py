"""``torch.jit._state``: whether TorchScript is on.  It is, and returns what it is given."""

__all__ = ["_enabled"]


class EnabledProxy:
    """What programs look at before they script."""

    enabled = True

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()


def enable() -> None:
    """Switch TorchScript on, as it is from the beginning."""
    _enabled.enabled = True


def disable() -> None:
    """Switch TorchScript off."""
    _enabled.enabled = False
