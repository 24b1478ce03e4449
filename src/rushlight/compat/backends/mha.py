"""``torch.backends.mha``: whether encoders leave padding out in evaluation."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` was given last, True at first."""
    from rushlight.nn.modules.transformer import FAST

    return FAST["on"]


def set_fastpath_enabled(value: bool) -> None:
    """Set whether `TransformerEncoder` gives zeros for padding in evaluation without gradients."""
    from rushlight.nn.modules.transformer import FAST

    FAST["on"] = value
