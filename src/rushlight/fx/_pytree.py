"""Trees of arguments, taken apart as the code of a graph does it: by the specification that was found while tracing."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from rushlight.basics.tree import Spec as TreeSpec
from rushlight.utils._pytree import SUPPORTED_NODES

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

Flatten = Callable[[Any, TreeSpec], list[Any]]
_flatten: dict[Any, Flatten] = {
    dict: lambda tree, spec: [tree[key] for key in spec.context],
    **dict.fromkeys((list, tuple, namedtuple), lambda tree, spec: [tree[i] for i in range(spec.num_children)]),
}


def register_pytree_flatten_spec(
    cls: type[Any], flatten_fn_spec: Flatten, flatten_fn_exact_match_spec: object = None
) -> None:
    """Let `tree_flatten_spec` take objects of a class apart by a function of an object and its specification."""
    _flatten[cls] = flatten_fn_spec


def tree_flatten_spec(tree: object, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree, which are where `spec` says.

    More items than it says are left.  Raises RuntimeError for a class that nobody registered, KeyError or IndexError where
    items are missing.
    """
    if spec.is_leaf():
        return [tree]
    kind: Any = spec.type
    registered = SUPPORTED_NODES.get(kind)
    if kind not in _flatten and registered is not None:
        parts, _ = registered.flatten_fn(tree)
    elif kind not in _flatten:
        raise RuntimeError(
            f"tree_flatten_spec: {kind} was not registered: call register_pytree_flatten_spec({kind}, ...)"
        )
    else:
        parts = _flatten[kind](tree, spec)
    return [leaf for part, child in zip(parts, spec.children(), strict=True) for leaf in tree_flatten_spec(part, child)]
