"""``torch.utils._pytree``: trees of containers, by the names that scripts use for :mod:`rushlight.tree`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight import tree as trees
from rushlight.tree import Spec, is_namedtuple, tree_unflatten

__all__ = ["PyTree", "PyTreeSpec", "TreeSpec", "is_namedtuple", "tree_all", "tree_all_only", "tree_any", "tree_any_only",
           "tree_flatten", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map", "tree_map_only", "tree_structure",
           "tree_unflatten"]  # fmt: skip

PyTree = Any
PyTreeSpec = TreeSpec = Spec
IsLeaf = Callable[[Any], bool] | None


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree in order, and its spec; what `is_leaf` says yes to is a leaf too.

    >>> from rushlight.utils._pytree import tree_flatten
    >>> tree_flatten([1, (2, 3)], is_leaf=lambda tree: isinstance(tree, tuple))
    ([1, (2, 3)], list(*, *))
    """
    return trees.tree_flatten(tree, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree in order."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> Spec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a tree is a leaf."""
    return tree_structure(tree, is_leaf).is_leaf()


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with `func` applied to each leaf, and to what stands there in `rests`, which may go on below.

    Raises ValueError where one of `rests` does not go as far as the tree.

    >>> from rushlight.utils._pytree import tree_map
    >>> tree_map(lambda a, b: (a, b), {"x": 1, "y": 2}, {"y": 3, "x": [4]})
    {'x': (1, [4]), 'y': (2, 3)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_up_to(rest, spec) for rest in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def _up_to(tree: PyTree, spec: Spec) -> list[Any]:
    """What stands in a tree where `spec` has its leaves.  Raises ValueError where the tree does not go so far."""
    if spec.is_leaf():
        return [tree]
    kind, _, children = trees.children_of(tree)
    if kind is None or (kind is not spec.type and not (isinstance(tree, dict) and issubclass(spec.type, dict))):
        raise ValueError(f"tree_map(): expected {spec.type}, but got {type(tree)}")
    if isinstance(tree, dict):
        if set(tree) != set(spec.context):
            raise ValueError(f"tree_map(): expected the keys {list(spec.context)}, but got {list(tree)}")
        children = [tree[key] for key in spec.context]
    if len(children) != len(spec.children):
        raise ValueError(f"tree_map(): expected {len(spec.children)} children, but got {len(children)}")
    return [found for child, below in zip(children, spec.children, strict=True) for found in _up_to(child, below)]


Types = type | tuple[type, ...] | Callable[[Any], bool]


def _asks(types: Types) -> Callable[[Any], bool]:
    """A function saying whether a leaf is of these types."""
    if isinstance(types, type | tuple):
        return lambda leaf: isinstance(leaf, types)
    return types


def tree_map_only(type_or_types: Types, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with `func` applied to the leaves of a type, of one of several, or that a function says yes to.

    >>> from rushlight.utils._pytree import tree_map_only
    >>> tree_map_only(int, lambda x: -x, [1, "a", (2.0, 3)])
    [-1, 'a', (2.0, -3)]
    """
    asks = _asks(type_or_types)
    return tree_map(lambda leaf: func(leaf) if asks(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(types: Types, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves of these types."""
    return all(map(pred, filter(_asks(types), tree_leaves(tree, is_leaf))))


def tree_any_only(types: Types, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf of these types."""
    return any(map(pred, filter(_asks(types), tree_leaves(tree, is_leaf))))
