"""``torch.utils._config_module``: the class of modules that hold settings."""

from types import ModuleType

__all__ = ["ConfigModule"]


class ConfigModule(ModuleType):
    """A module of settings.  Those of PyTorch's compilers are plain modules here: nothing depends on them."""
