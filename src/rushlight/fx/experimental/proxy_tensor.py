"""Tracing by a mode of operators: there is none, and so none is active."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> Any:
    """The mode that traces operators: None."""
    return None


def make_fx(*args: object, **kwargs: object) -> NoReturn:
    """Refused: operators are not traced below autograd; `torch.fx.symbolic_trace` traces functions of torch."""
    raise NotImplementedError("torch.fx.experimental.proxy_tensor.make_fx: use torch.fx.symbolic_trace")
