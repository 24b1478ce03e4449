"""``torch._C._nn``: what `torch.nn.functional` calls in PyTorch, with the arguments that operators have below it."""

from __future__ import annotations

from typing import Any

from rushlight.nn.base import convert


def _parse_to(*args: object, **kwargs: object) -> tuple[Any, Any, bool, Any]:
    """What `Module.to` understands its arguments as: device, dtype, non_blocking and memory format."""
    target, kind, memory_format = convert._parse_to(args, kwargs)
    return target, kind, bool(kwargs.get("non_blocking", False)), memory_format


def __getattr__(name: str) -> Any:
    from rushlight._C import _known
    from rushlight.library import aten  # here: who imports this module seldom asks for a function of it

    return _known.known("torch._C._nn", name, _known.LAYERS) if name in _known.LAYERS else aten.function(name)
