"""Modules whose activations are computed again, or kept elsewhere, until backward."""

from rushlight.basics.lazily import lazily

__getattr__ = lazily(__name__, [f"{__name__}.checkpoint_wrapper"])
