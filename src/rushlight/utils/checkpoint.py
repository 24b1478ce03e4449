"""torch.utils.checkpoint: activation checkpointing."""

from rushlight.checkpoint import *  # noqa: F403
from rushlight.checkpoint import __all__ as __all__
