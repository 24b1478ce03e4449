"""Trees of Python containers: flattened to leaves and built again.

A tree is a leaf, or a list, tuple, named tuple, shape, dict, OrderedDict, defaultdict or deque of trees, or an object of a
class that was registered. None is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rushlight.basics.size import Size


class Registered(NamedTuple):
    """How objects of a class come apart, into children and a context, and together again."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[list[Any], Any], Any]
    name: str | None = None
    flatten_with_keys: Callable[[Any], Any] | None = None
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None


def sized(values: Iterable[Any], context: object) -> tuple[Any, ...]:
    """A shape of integers; a tuple of what was made of them otherwise."""
    found = tuple(values)
    return Size(found) if all(type(v) is int for v in found) else found


REGISTERED: dict[type, Registered] = {Size: Registered(lambda sizes: (list(sizes), None), sized, "torch.Size")}


class Spec:
    """The shape of a tree: its container (`kind` is None for a leaf), what else that needs, and the shapes `below`."""

    __slots__ = ("below", "context", "count", "kind")

    def __init__(self, kind: type | None, context: Any, below: tuple[Spec, ...]):
        self.kind, self.context, self.below = kind, context, tuple(below)
        self.count = 1 if kind is None else 0
        for child in self.below:
            self.count += child.count

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Spec) and self.kind is other.kind and self.context == other.context
                and self.below == other.below)  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.kind, self.below))  # equal specs have equal contexts, which may be lists

    @property
    def type(self) -> Any:
        """The kind of the top, None for a leaf; `namedtuple` for all of these, whose context says which."""
        return namedtuple if self.kind is not None and self.context is self.kind else self.kind

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return self.count

    @property
    def num_children(self) -> int:
        """How many trees lie directly below the top."""
        return len(self.below)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves the tree has."""
        return 1 + sum(child.num_nodes for child in self.below)

    @property
    def children_specs(self) -> list[Spec]:
        """The shapes directly below the top: an older name of `children()`."""
        return list(self.below)

    def children(self) -> list[Spec]:
        """The shapes directly below the top."""
        return list(self.below)

    def child(self, index: int) -> Spec:
        """The shape at a place directly below the top."""
        return self.below[index]

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return self.kind is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves.  Raises ValueError where their number is another."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in a tree where this shape has its leaves.  Raises ValueError where the tree does not go so far."""
        if self.kind is None:
            return [tree]
        kind, context, children = children_of(tree)
        dicts = kind is not None and isinstance(tree, dict) and issubclass(self.kind, dict)
        if not dicts and kind is not self.kind:
            raise ValueError(f"Node type mismatch; expected {self.kind}, but got {type(tree)}.")
        if len(children) != len(self.below):
            raise ValueError(f"Node arity mismatch; expected {len(self.below)}, but got {len(children)}.")
        if dicts:
            keys = keys_of(self.kind, self.context)
            if missing := [key for key in keys if key not in tree]:
                extra = [key for key in tree if key not in keys]
                raise ValueError(f"Node keys mismatch; missing key(s): {set(missing)}; extra key(s): {set(extra)}.")
            children = [tree[key] for key in keys]
        elif context != self.context:
            raise ValueError(
                f"Node context mismatch for node type {self.kind}: expected {self.context}, but got {context}."
            )
        return [leaf for child, part in zip(children, self.below, strict=True) for leaf in part.flatten_up_to(child)]

    def __repr__(self) -> str:
        return self._text(2)

    def _text(self, indent: int) -> str:
        if self.kind is None:
            return "*"
        parts = f",\n{' ' * indent}".join(child._text(indent + 2) for child in self.below)
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{parts}])"


class LeafSpec(Spec):
    """The shape of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, ())


LEAF = LeafSpec()


# What an object of a kind needs beside its children to be built again.
CONTEXTS: dict[type, Callable[[Any], Any]] = {
    tuple: lambda tree: None,
    list: lambda tree: None,
    dict: list,
    OrderedDict: list,
    defaultdict: lambda tree: [tree.default_factory, [*tree]],
    deque: lambda tree: tree.maxlen,
}


def is_namedtuple(tree: object) -> bool:
    """Whether a tree is a named tuple."""
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def children_of(tree: Any) -> tuple[type | None, Any, list[Any]]:
    """The kind, context and children of the top of a tree; the kind of a leaf is None."""
    kind = type(tree)
    context_of = CONTEXTS.get(kind)
    if context_of is not None:
        return kind, context_of(tree), list(tree.values() if issubclass(kind, dict) else tree)
    if is_namedtuple(tree):
        return kind, None if hasattr(kind, "n_sequence_fields") else kind, list(tree)
    if kind in REGISTERED:
        children, context = REGISTERED[kind].flatten_fn(tree)
        return kind, context, list(children)
    return None, None, []


def tree_flatten(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree in order, and its spec; what `is_leaf` says yes to is a leaf too.

    >>> from rushlight.basics.tree import tree_flatten
    >>> tree_flatten({"a": 1, "b": (2, [3])})
    ([1, 2, 3], TreeSpec(dict, ['a', 'b'], [*,
      TreeSpec(tuple, None, [*,
        TreeSpec(list, None, [*])])]))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: object, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Spec:
    kind, context, children = children_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    return Spec(kind, context, tuple([_flatten(child, leaves, is_leaf) for child in children]))


def keys_of(kind: type, context: Any) -> list[Any]:
    """The keys of a kind of dictionary, of its context."""
    return list(context[1] if kind is defaultdict else context)


def tree_unflatten(leaves: Iterable[Any], spec: Spec) -> Any:
    """The tree of shape `spec` with these leaves. Raises ValueError where their number is another, TypeError for no spec."""
    if not isinstance(spec, Spec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(spec)}.")
    leaves = list(leaves)
    if len(leaves) != spec.count:
        raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                         f"holds {spec.count} items ({spec!r})")  # fmt: skip
    return _build(iter(leaves), spec)


def _build(leaves: Any, spec: Spec) -> object:
    kind: Any = spec.kind
    if kind is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.below]
    if kind is list:
        return children
    if kind is dict or kind is OrderedDict:
        return kind(zip(spec.context, children, strict=True))
    if kind is defaultdict:
        return defaultdict(spec.context[0], zip(spec.context[1], children, strict=True))
    if kind is deque:
        return deque(children, spec.context)
    if kind in REGISTERED:
        return REGISTERED[kind].unflatten_fn(children, spec.context)
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def tree_leaves(tree: object) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree)[0]


def tree_map(f: Callable[..., Any], tree: object, *others: object) -> Any:
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
    if kind is not spec.kind or len(children) != len(spec.below) or (context is not None and context != spec.context):
        return None
    values: list[Any] = []
    for child, below in zip(children, spec.below, strict=True):
        part = broadcast_to(child, below)
        if part is None:
            return None
        values += part
    return values
