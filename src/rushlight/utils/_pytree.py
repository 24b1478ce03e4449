"""``torch.utils._pytree``: trees of containers, by the names that scripts use for `rushlight.basics.tree`."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any

from rushlight.basics import tree as trees
from rushlight.basics.size import Size
from rushlight.basics.tree import REGISTERED, LeafSpec, Registered, Spec, children_of, tree_unflatten
from rushlight.dispatch.results import Named
from rushlight.utils._treespecs import (
    _register_namedtuple as _register_namedtuple,
)
from rushlight.utils._treespecs import (
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

__all__ = ["GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SUPPORTED_NODES", "SequenceKey", "keystr",
           "register_pytree_node", "tree_flatten_with_path", "tree_map_with_path", "PyTreeSpec", "TreeSpec",
           "is_namedtuple", "is_namedtuple_instance", "is_structseq_instance", "tree_all", "tree_all_only",
           "tree_any", "tree_any_only", "tree_flatten", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map",
           "tree_map_only", "tree_structure", "arg_tree_leaves", "is_constant_class", "is_namedtuple_class",
           "is_structseq", "is_structseq_class", "key_get", "map_only", "register_constant", "register_dataclass",
           "tree_leaves_with_path", "tree_map_", "tree_map_only_", "tree_unflatten", "treespec_dict",
           "treespec_dumps", "treespec_leaf", "treespec_loads", "treespec_pprint", "treespec_tuple"]  # fmt: skip

PyTree = Any
Context = Any
PyTreeSpec = TreeSpec = Spec
IsLeaf = Callable[[Any], bool] | None
SUPPORTED_NODES = REGISTERED  # by class: Python's containers too, see the end of this file


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:
    """Let objects of a class be nodes of trees, not leaves.

    flatten_fn: the children and a context of an object; unflatten_fn: an object of both; flatten_with_keys_fn: the children
    with their keys, for paths. to_dumpable_context, from_dumpable_context: a context as JSON knows it, and back.  Raises
    ValueError for a class that was registered already, and for one of the last two without the other.

    >>> from types import SimpleNamespace
    >>> class Pair(SimpleNamespace): ...
    >>> register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(a=children[0], b=children[1]))
    >>> tree_map(lambda x: x + 1, [Pair(a=1, b=2), 3])
    [Pair(a=2, b=3), 4]
    """
    if cls in REGISTERED:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered, got one of them."
        )
    REGISTERED[cls] = Registered(
        flatten_fn, unflatten_fn, serialized_type_name, flatten_with_keys_fn, to_dumpable_context, from_dumpable_context
    )


_register_pytree_node = register_pytree_node  # its older name


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: list[Any], context: list[Any]) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _get_node_type(tree: object) -> object:
    """The container at the top of a tree, `namedtuple` for all of these; the class of a leaf."""
    if is_namedtuple(tree):
        return namedtuple
    return children_of(tree)[0] or type(tree)


@dataclass(frozen=True)
class MappingKey:
    """A step to what a dictionary holds under a key."""

    key: Any

    def get(self, mapping: Any) -> Any:
        """What the step leads to."""
        return mapping[self.key]

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """A step to what a list or tuple holds at a place."""

    idx: int

    def get(self, sequence: Any) -> Any:
        """What the step leads to."""
        return sequence[self.idx]

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A step to an attribute."""

    name: str

    def get(self, obj: Any) -> Any:
        """What the step leads to."""
        return getattr(obj, self.name)

    def __str__(self) -> str:
        return f".{self.name}"


def is_namedtuple_instance(obj: object) -> bool:
    """Whether a value is a named tuple."""
    return trees.is_namedtuple(obj)


def is_namedtuple(obj: object) -> bool:
    """Whether a value is a named tuple, or a class of some."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: object) -> bool:
    """Whether a value is a result with names, as `torch.max(x, 0)` and `time.localtime()` give."""
    return isinstance(obj, tuple) and (isinstance(obj, Named) or hasattr(type(obj), "n_sequence_fields"))


def _list_flatten(d: list[Any]) -> tuple[list[Any], None]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: None) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), x) for i, x in enumerate(d)], None


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], None]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: None) -> tuple[Any, ...]:
    return tuple(values)


def _tuple_flatten_with_keys(d: tuple[Any, ...]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), x) for i, x in enumerate(d)], None


def keystr(kp: tuple[Any, ...]) -> str:
    """The way to a leaf as code.

    >>> keystr((SequenceKey(0), MappingKey("a")))
    "[0]['a']"
    """
    return "".join(map(str, kp))


def _steps(tree: Any) -> list[tuple[Any, Any]]:
    """What lies directly below the top of a tree, each with the step that leads there."""
    kind, _, children = children_of(tree)
    if kind in REGISTERED:
        way = REGISTERED[kind].flatten_with_keys
        if way is None:
            raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Give register_pytree_node one, which "
                             "returns children with their keys.")  # fmt: skip
        return list(way(tree)[0])
    if is_namedtuple(tree) and not is_structseq_instance(tree):
        return [(GetAttrKey(name), child) for name, child in zip(tree._fields, children, strict=True)]
    if isinstance(tree, dict):
        return [(MappingKey(key), child) for key, child in zip(tree, children, strict=True)]
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _walk(tree: object, way: tuple[Any, ...], is_leaf: IsLeaf) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if children_of(tree)[0] is None or (is_leaf is not None and is_leaf(tree)):
        yield way, tree
        return
    for step, child in _steps(tree):
        yield from _walk(child, (*way, step), is_leaf)


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], Spec]:
    """The leaves of a tree in order, each with the way to it, and its spec."""
    return list(_walk(tree, (), is_leaf)), tree_flatten(tree, is_leaf)[1]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with `func(way, leaf)` for each leaf; leaves of `rests`, trees of the same shape, are passed too."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_flatten(other, is_leaf)[0] for other in rests]
    return tree_unflatten([func(*row, *more) for row, *more in zip(found, *others, strict=True)], spec)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree in order, and its spec; what `is_leaf` says yes to is a leaf too.

    >>> from rushlight.utils._pytree import tree_flatten
    >>> tree_flatten([1, (2, 3)], is_leaf=lambda tree: isinstance(tree, tuple))
    ([1, (2, 3)], TreeSpec(list, None, [*,
      *]))
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
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


Types = type | tuple[type, ...] | UnionType | Callable[[Any], bool]


def _asks(types: Types) -> Callable[[Any], bool]:
    """A function saying whether a leaf is of these types."""
    if isinstance(types, type | tuple | UnionType):
        return lambda leaf: isinstance(leaf, types)
    if not callable(types):
        raise TypeError(f"Argument must be a type, a tuple of types, or a callable, got {types!r}")
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


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves of a tree in order, each with the way to it."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree itself, after `func` was called with each leaf, as by `tree_map`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only_(type_or_types: Types, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree itself, after `func` was called with the leaves that `tree_map_only` would map."""
    tree_map_only(type_or_types, func, tree, is_leaf)
    return tree


def map_only(type_or_types: Types, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: what is of these types is mapped, all else passed on."""
    asks = _asks(type_or_types)
    return lambda func: lambda leaf: func(leaf) if asks(leaf) else leaf


def key_get(obj: object, kp: tuple[Any, ...]) -> Any:
    """What a way leads to."""
    for step in kp:
        obj = step.get(obj)
    return obj


def is_namedtuple_class(cls: object) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls: object) -> bool:
    """Whether a class is one of results with names."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and (issubclass(cls, Named) or hasattr(cls, "n_sequence_fields"))
    )


def is_structseq(obj: object) -> bool:
    """Whether a value is a result with names, or the class of some."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _broadcast_to_and_flatten(tree: PyTree, treespec: Spec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """One value for each leaf of a shape, of a tree that may stop early; None where it does not fit."""
    return trees.broadcast_to(tree, treespec)


STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({list, tuple, namedtuple, deque}) | STANDARD_DICT_TYPES


CONSTANTS: set[type] = set()


def check_fields(found: set[str], given: set[str]) -> None:
    """Raise ValueError unless the names given are those of a dataclass's fields."""
    if missing := found - given:
        raise ValueError("register_dataclass(): field_names does not include all dataclass fields. Missing fields in "
                         f"`field_names`: {missing}; name them in drop_field_names if they are no children")  # fmt: skip
    if more := given - found:
        raise ValueError(
            f"register_dataclass(): field_names include unexpected fields. Unexpected fields in `field_names`: {more}"
        )


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let objects of a dataclass be nodes of trees: their fields are the children, but those that are None.

    field_names: those of the fields, if the class is no dataclass; drop_field_names: fields that are no children, and come
    back as their defaults.  Raises ValueError for names that are not the fields'.
    """
    dropped = set(drop_field_names or ())
    if is_dataclass(cls):
        found = [f.name for f in fields(cls) if f.init and f.name not in dropped]
        if field_names is not None:
            check_fields(set(found), set(field_names))
    elif field_names is None:
        raise ValueError(f"register_dataclass(): field_names must be given for {cls}, which is no dataclass")
    names = list(field_names if field_names is not None else found)

    def flatten(x: Any) -> tuple[list[Any], Any]:
        held = [(name, getattr(x, name)) for name in names]
        return [v for _, v in held if v is not None], [
            [k for k, v in held if v is not None],
            [k for k, v in held if v is None],
        ]

    def unflatten(values: list[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    def with_keys(x: object) -> tuple[list[Any], Any]:
        values, context = flatten(x)
        return [(GetAttrKey(k), v) for k, v in zip(context[0], values, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


def register_constant(cls: type) -> None:
    """Let objects of a class be part of a tree's shape, without leaves.  Raises TypeError unless they can be compared and hashed."""
    if getattr(cls, "__eq__", None) is object.__eq__ or cls.__hash__ is None:
        raise TypeError(f"register_constant(cls={cls}) expects `cls` to have a non-default `__eq__` and a `__hash__`")
    register_pytree_node(cls, lambda x: ([], x), lambda _, context: context)
    CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether a class was registered by `register_constant`."""
    return cls in CONSTANTS


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return [*d.values()], [d.default_factory, [*d]]


def _defaultdict_unflatten(values: Iterable[Any], context: list[Any]) -> defaultdict[Any, Any]:
    return defaultdict(context[0], _dict_unflatten(list(values), context[1]))


def _namedtuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], type]:
    return [*d], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Callable[..., Any]) -> Any:
    return context(*values)


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], int | None]:
    return [*d], d.maxlen


def _deque_unflatten(values: Iterable[Any], context: int | None) -> deque[Any]:
    return deque(values, maxlen=context)


def _ordereddict_unflatten(values: Iterable[Any], context: list[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


_odict_flatten = _ordereddict_flatten = _dict_flatten
_odict_unflatten = _ordereddict_unflatten

# `children_of` knows them without: for those who walk trees by themselves.
for _kind, _ways in {
    list: (_list_flatten, _list_unflatten, _list_flatten_with_keys),
    tuple: (_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    dict: (_dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    OrderedDict: (_ordereddict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    defaultdict: (_defaultdict_flatten, _defaultdict_unflatten, _dict_flatten_with_keys),
    deque: (_deque_flatten, _deque_unflatten, _list_flatten_with_keys),
    namedtuple: (_namedtuple_flatten, _namedtuple_unflatten, None),
}.items():
    REGISTERED[_kind] = Registered(_ways[0], _ways[1], None, _ways[2])  # type: ignore[index, arg-type]
REGISTERED[Size] = REGISTERED[Size]._replace(flatten_with_keys=_tuple_flatten_with_keys)
