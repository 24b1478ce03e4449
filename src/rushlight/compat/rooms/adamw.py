"""``torch.optim.adamw``: AdamW, which is in `rushlight.optim.adam` here."""

from rushlight.optim.adam import AdamW

__all__ = ["AdamW"]
