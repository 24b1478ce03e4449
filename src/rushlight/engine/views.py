"""Views: how their place in the graph follows in-place changes of the memory they share."""

from __future__ import annotations

from typing import Any

from rushlight.engine.conform import tensor_functions
from rushlight.state import Setting
from rushlight.storage import storage_of
from rushlight.tensor import LEAF, Tensor, ViewInfo


def make_view(view: Tensor, of: Tensor, replay: Any, kind: str) -> None:
    """Note that `view` shares the memory of `of`, and how: `replay(of)` makes it again."""
    info = of._view
    storage = storage_of(of)
    view._storage = storage
    if info is None:
        view._view = ViewInfo(of, (replay,), storage.version, kind, of._array)
    else:
        view._view = ViewInfo(info.base, (*info.chain, replay), storage.version, kind or info.kind, info.array)


def chain_of(info: ViewInfo) -> tuple[Any, ...]:
    """The operators that make a view from its base as the base is now."""
    if info.array is info.base._array:
        return info.chain
    return (tensor_functions["restride"](info.array, info.base._array), *info.chain)


def replay(chain: tuple[Any, ...], base: Any) -> Any:
    """Apply the operators of a view to a tensor or an array."""
    for step in chain:
        base = step(base)
    return base


def refresh(view: Tensor) -> None:
    """Recompute the edge of a view whose base was changed in place since."""
    info = view._view
    assert view._storage is not None
    version = view._storage.version
    if info.version == version:
        return
    info.version = version
    base = info.base
    if base._edge is None or base._edge is LEAF or info.kind in ("no_grad", "function"):
        return
    with Setting("grad", True), Setting("saved_hooks", ()):
        view._edge = replay(chain_of(info), base)._edge


Tensor._refresh = staticmethod(refresh)
