"""``torch.backends.mkldnn``: oneDNN, which rushlight does not use."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether oneDNN is used: no, convolutions are rushlight's own."""
    return False
