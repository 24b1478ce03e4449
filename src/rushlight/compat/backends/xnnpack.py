"""``torch.backends.xnnpack``: a library of kernels, which rushlight does not use."""

from rushlight.compat.backends import _settings, quantized

__all__ = ["enabled"]

enabled: bool
_settings.with_settings(__name__, enabled=property(lambda module: False, quantized._fixed))
