"""``torch.backends.mps``: Apple's GPUs, which rushlight does not use."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Whether an Apple GPU can be used: no."""
    return False


def is_built() -> bool:
    """Whether there is support for Apple's GPUs: no."""
    return False
