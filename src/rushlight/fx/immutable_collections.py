"""Lists and dictionaries that stay as they are: what is passed to a node, whose users are known by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refused(self: object, *args: object, **kwargs: object) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(
            f"{kind!r} object does not support mutation. What is passed to a torch.fx.Node is changed by assigning a changed "
            "copy of it:\n\n    args = list(node.args)\n    args[0] = ...\n    node.args = tuple(args)\n"
        )

    refused.__name__ = name
    refused.__doc__ = "Refused: raises TypeError."
    return refused


class immutable_list(list[Any]):
    """A list that refuses to be changed, with TypeError; it can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary that refuses to be changed, with TypeError; it can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (list(self.items()),)


for _kind, _names in (
    (immutable_list, "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"),
    (immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"),
):
    for _name in _names.split():
        setattr(_kind, _name, _refusing(_name))

register_pytree_node(immutable_list, lambda x: (list(x), None), lambda children, context: immutable_list(children))
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
)


def frozen(a: object) -> Any:
    """`a` with its lists and dictionaries, those within each other too, as such."""
    if isinstance(a, tuple):
        items = [frozen(item) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map(frozen, a))
    if isinstance(a, dict):
        return immutable_dict((key, frozen(item)) for key, item in a.items())
    return slice(*map(frozen, (a.start, a.stop, a.step))) if isinstance(a, slice) else a
