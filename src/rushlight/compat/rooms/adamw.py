"""``torch.optim.adamw``: AdamW and its function, which are in `rushlight.optim.adam` here."""

from rushlight.optim.adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
