"""``functorch.einops``: dimensions named, moved, joined and split."""

from rushlight.func import rearrange

__all__ = ["rearrange"]
