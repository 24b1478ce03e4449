"""``torch._prims``: operators of which PyTorch makes others.  Here every operator stands for itself."""

from rushlight.basics.lazily import lazily
from rushlight.compat.rooms import _prims_common as utils

__all__ = ["utils"]

__getattr__ = lazily("torch._prims", [f"{__name__}.context"])
