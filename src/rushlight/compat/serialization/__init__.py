"""``torch.utils.serialization``: settings of `torch.save` and `torch.load`, see its `config`."""

from rushlight.compat.serialization import config

__all__ = ["config"]
