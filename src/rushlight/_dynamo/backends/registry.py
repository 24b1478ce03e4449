"""Backends by name.  Nothing is captured that a backend could be given, so none is called; unknown names are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight._dynamo.exc import InvalidBackend

__all__ = ["get_default_backend", "list_backends", "lookup_backend", "register_backend", "set_default_backend"]

_DEBUG = (
    "aot_eager aot_eager_decomp_partition aot_eager_decomp_partition_crossref aot_eager_decomp_partition_with_mode "
    "aot_eager_default_partitioner aot_ts eager eager_debug eager_noexcept invoke_subgraph pre_dispatch_eager ts"
)
_known: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_DEBUG.split(), ("debug",)),
    **dict.fromkeys(("cudagraphs", "inductor", "openxla", "tvm"), ()),
}
_registered: dict[str, Callable[..., Any]] = {}
_default: list[str | Callable[..., Any]] = ["inductor"]


def register_backend(
    compiler_fn: Callable[..., Any] | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Any:
    """Give a backend a name (its own, unless another is given); a decorator where it is called without a backend."""
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    name = name or compiler_fn.__name__
    if name in _registered:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name], _known[name] = compiler_fn, tuple(tags)
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """A backend by its name, or the one that is given.

    What is known by name alone gives back the module that it is given.  Raises InvalidBackend for other names.
    """
    if not isinstance(compiler_fn, str):
        found: Callable[..., Any] = compiler_fn
        return found
    if compiler_fn not in _known:
        raise InvalidBackend(compiler_fn)
    return _registered.get(compiler_fn, _as_it_is)


def get_default_backend() -> str | Callable[..., Any]:
    """The backend of `torch.compile` where none is given."""
    return _default[0]


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Choose it, by name or itself; None is "inductor".  Raises InvalidBackend for names that are not known."""
    if backend is not None:
        lookup_backend(backend)
    _default[0] = "inductor" if backend is None else backend


def _as_it_is(gm: object, example_inputs: object, **options: object) -> object:
    return gm


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names of backends, without those of these kinds."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in _known.items() if not excluded.intersection(tags))
