"""``torch.backends.kleidiai``: Arm's kernels, which rushlight does not use."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether KleidiAI is used: no."""
    return False
