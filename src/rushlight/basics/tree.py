"""Trees of Python containers: flattened to leaves and built again.

A tree is a leaf, or a list, tuple, named tuple, dict, OrderedDict, defaultdict or deque of trees, or an object of a class
that was registered. None is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple


class Registered(NamedTuple):
    """How objects of a class come apart, into children and a context, and together again."""

    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]
    name: str | None = None
    flatten_with_keys: Callable[[Any], Any] | None = None


REGISTERED: dict[type, Registered] = {}


class Spec:
    """The shape of a tree: its container (`kind` is None for a leaf), what else that needs, and its children."""

    __slots__ = ("children", "context", "count", "kind")

    def __init__(self, kind: type | None, context: Any, children: tuple[Spec, ...]):
        self.kind, self.context, self.children = kind, context, children
        self.count: int = 1 if kind is None else sum(child.count for child in children)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Spec) and self.kind is other.kind and self.context == other.context
                and self.children == other.children)  # fmt: skip

    __hash__ = None  # type: ignore[assignment]

    @property
    def type(self) -> Any:
        """The kind of the top, None for a leaf."""
        return self.kind

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return self.count

    @property
    def num_children(self) -> int:
        """How many trees lie directly below the top."""
        return len(self.children)

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return self.kind is None

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        named = isinstance(self.context, list)
        parts = (
            (f"{k!r}: {c!r}" for k, c in zip(self.context, self.children, strict=True))
            if named
            else map(repr, self.children)
        )
        return f"{self.kind.__name__}({', '.join(parts)})"


class LeafSpec(Spec):
    """The shape of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, ())


LEAF = LeafSpec()


def is_namedtuple(tree: Any) -> bool:
    """Whether a tree is a named tuple."""
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def children_of(tree: Any) -> tuple[type | None, Any, list[Any]]:
    """The kind, context and children of the top of a tree; the kind of a leaf is None."""
    kind = type(tree)
    if kind is tuple or kind is list or is_namedtuple(tree):
        return kind, None, list(tree)
    if kind is dict or kind is OrderedDict:
        return kind, list(tree), list(tree.values())
    if kind is defaultdict:
        return kind, [*tree], [*tree.values()]
    if kind is deque:
        return kind, (tree.maxlen,), list(tree)
    if kind in REGISTERED:
        children, context = REGISTERED[kind].flatten(tree)
        return kind, context, list(children)
    return None, None, []


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree in order, and its spec; what `is_leaf` says yes to is a leaf too.

    >>> from rushlight.basics.tree import tree_flatten
    >>> tree_flatten({"a": 1, "b": (2, [3])})
    ([1, 2, 3], dict('a': *, 'b': tuple(*, list(*))))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Spec:
    kind, context, children = children_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    if kind is defaultdict:
        context = _Defaults(context, tree.default_factory)
    return Spec(kind, context, tuple(_flatten(child, leaves, is_leaf) for child in children))


class _Defaults(list[Any]):
    """The keys of a defaultdict, and its factory."""

    def __init__(self, keys: list[Any], factory: Any):
        super().__init__(keys)
        self.factory = factory


def tree_unflatten(leaves: list[Any], spec: Spec) -> Any:
    """The tree of shape `spec` with these leaves. Raises ValueError where their number is another."""
    leaves = list(leaves)
    if len(leaves) != spec.count:
        raise ValueError(f"tree_unflatten(): the tree has {spec.count} leaves, but {len(leaves)} were given")
    return _build(iter(leaves), spec)


def _build(leaves: Any, spec: Spec) -> Any:
    kind: Any = spec.kind
    if kind is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.children]
    if kind is list:
        return children
    if kind is dict or kind is OrderedDict:
        return kind(zip(spec.context, children, strict=True))
    if kind is defaultdict:
        return defaultdict(spec.context.factory, zip(spec.context, children, strict=True))
    if kind is deque:
        return deque(children, spec.context[0])
    if kind in REGISTERED:
        return REGISTERED[kind].unflatten(children, spec.context)
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree)[0]


def tree_map(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree with `f` applied to each leaf (and to those of `others`, trees of the same shape, beside it)."""
    leaves, spec = tree_flatten(tree)
    columns = [leaves]
    for other in others:
        more, shape = tree_flatten(other)
        if shape != spec:
            raise ValueError(f"tree_map(): trees of different shapes: {spec!r} and {shape!r}")
        columns.append(more)
    return tree_unflatten([f(*row) for row in zip(*columns, strict=True)], spec)


def broadcast_to(prefix: Any, spec: Spec) -> list[Any] | None:
    """One value for each leaf of `spec` from a tree that may stop early: its leaf then serves all below.

    None where `prefix` does not fit the shape.
    """
    if spec.kind is None or children_of(prefix)[0] is None:
        return None if children_of(prefix)[0] is not None else [prefix] * spec.count
    kind, context, children = children_of(prefix)
    if (
        kind is not spec.kind
        or len(children) != len(spec.children)
        or (context is not None and context != spec.context)
    ):
        return None
    values: list[Any] = []
    for child, below in zip(children, spec.children, strict=True):
        part = broadcast_to(child, below)
        if part is None:
            return None
        values += part
    return values
