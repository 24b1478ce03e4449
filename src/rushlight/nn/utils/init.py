"""skip_init."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics.signatures import signature_of

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Any], *args: object, **kwargs: object) -> Module:
    """Make a module whose parameters are left uninitialised.

    Raises RuntimeError unless `module_cls` is a Module class whose constructor takes `device`.
    """
    from rushlight.nn.modules.module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in signature_of(module_cls).parameters:
        raise RuntimeError(f"Module must support a 'device' arg to skip initialization: {module_cls.__name__}")
    final = kwargs.pop("device", None) or "cpu"
    module: Any = module_cls(*args, device="meta", **kwargs)  # where nothing is drawn
    return module.to_empty(device=final)
