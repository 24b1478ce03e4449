"""``torch.backends.mps``: Apple's GPUs, which rushlight does not use."""

__all__ = ["get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_available() -> bool:
    """Whether an Apple GPU can be used: no."""
    return False


def is_built() -> bool:
    """Whether there is support for Apple's GPUs: no."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is a macOS of at least that version, on a machine with such a GPU: no."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 or newer, on a machine with such a GPU: no."""
    return False


def get_core_count() -> int:
    """How many cores the GPU has: 0."""
    return 0


def get_name() -> str:
    """The name of the GPU: none."""
    return ""
