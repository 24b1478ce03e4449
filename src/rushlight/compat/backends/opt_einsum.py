"""``torch.backends.opt_einsum``: the order of products inside ``einsum``."""

__all__ = ["enabled", "is_available", "strategy"]

enabled: bool = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the package opt_einsum chooses the order: no."""
    return False
