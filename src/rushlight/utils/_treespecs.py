"""Shapes of trees made by hand, and written as text: part of ``_pytree``."""

from __future__ import annotations

import importlib
import json
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any

from rushlight.basics.tree import LEAF, REGISTERED, Registered, Spec, tree_unflatten

PROTOCOL = 1  # of the text; there is no other
PLAIN: dict[str, type] = {f"{kind.__module__}.{kind.__qualname__}": kind
                          for kind in (list, tuple, dict, OrderedDict, defaultdict, deque)}  # fmt: skip
NAMED_TUPLE = "collections.namedtuple"
NAMED_TUPLES: dict[type, str] = {}  # the names of classes of named tuples in such text


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name, by which `treespec_dumps` and `treespec_loads` know it."""
    NAMED_TUPLES[cls] = serialized_type_name


def treespec_leaf() -> Spec:
    """The shape of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[Spec] = (), /) -> Spec:
    """The shape of a tuple of trees of these shapes."""
    return Spec(tuple, None, tuple(iterable))


def treespec_dict(mapping: Mapping[Any, Spec] | Iterable[tuple[Any, Spec]] = (), /, **kwargs: Spec) -> Spec:
    """The shape of a dictionary of trees of these shapes."""
    found = dict(mapping, **kwargs)
    return Spec(dict, list(found), tuple(found.values()))


def treespec_dumps(treespec: Spec, protocol: int | None = None) -> str:
    """The shape as JSON, which `treespec_loads` reads.  Raises NotImplementedError for classes that have no name there."""
    if not isinstance(treespec, Spec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    if protocol not in (None, PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return json.dumps([PROTOCOL, _described(treespec)])


def _described(spec: Spec) -> dict[str, Any]:
    if spec.kind is None:
        return {"type": None, "context": None, "children_spec": []}
    name = _name_of(spec)
    context: Any = _of_defaults(spec.context) if spec.kind is defaultdict else _written(spec)
    return {"type": name, "context": context, "children_spec": [_described(child) for child in spec.below]}


def _written(spec: Spec) -> object:
    """The context of a container as text, or as its class was registered to have it."""
    if spec.kind is not None and spec.context is spec.kind:
        return NAMED_TUPLES[spec.kind]
    entry = REGISTERED.get(spec.kind) if spec.kind is not None else None
    if entry is not None and entry.dump is not None:
        return entry.dump(spec.context)
    return json.dumps(spec.context, default=_enumerated)


def _enumerated(value: object) -> dict[str, object]:
    """A member of an enum as JSON knows it.  Raises TypeError for what is none."""
    if not isinstance(value, Enum):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return {"__enum__": True, "fqn": f"{type(value).__module__}:{type(value).__qualname__}", "name": value.name}


def _enum_of(found: dict[str, Any]) -> object:
    """The member that `_enumerated` described, of a module that is imported already; other dictionaries as they are."""
    if found.get("__enum__") is not True:
        return found
    module, _, path = found["fqn"].partition(":")
    try:
        return attrgetter(path)(sys.modules[module])[found["name"]]
    except (KeyError, AttributeError) as error:
        raise ValueError(
            f"treespec_loads(): no enum {found['fqn']} with a member {found['name']!r} is imported"
        ) from error


def _of_defaults(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": getattr(factory, "__module__", None),
            "default_factory_name": getattr(factory, "__qualname__", None), "dict_context": keys}  # fmt: skip


def _name_of(spec: Spec) -> str:
    kind: Any = spec.kind
    plain = f"{kind.__module__}.{kind.__qualname__}"
    if plain in PLAIN:
        return plain
    if spec.context is kind and kind in NAMED_TUPLES:
        return NAMED_TUPLE
    if kind in REGISTERED:
        name = REGISTERED[kind].name
        if name is None:
            raise NotImplementedError(f"No registered serialization name for {kind} found. Please update your "
                                      "register_pytree_node call with a `serialized_type_name` kwarg.")  # fmt: skip
        return name
    raise NotImplementedError(f"Can't serialize TreeSpec of {getattr(spec.type, '__name__', kind)} class {kind}: register "
                              "it with a `serialized_type_name`.")  # fmt: skip


def treespec_loads(serialized: str) -> Spec:
    """The shape that `treespec_dumps` wrote.  Raises ValueError for another protocol, NotImplementedError for unknown classes."""
    protocol, described = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return _made(described)


def _made(described: dict[str, Any]) -> Spec:
    name = described["type"]
    if name is None:
        return LEAF
    named = {entry.name: kind for kind, entry in REGISTERED.items() if isinstance(entry, Registered) and entry.name}
    if name == NAMED_TUPLE:
        found = _named_tuple(described["context"])
        return Spec(found, found, tuple(_made(child) for child in described["children_spec"]))
    kind = PLAIN.get(name) or named.get(name)
    if kind is None:
        raise NotImplementedError(
            f"Deserializing {name} in a tree is not supported: no class was registered by that name"
        )
    context, load = described["context"], getattr(REGISTERED.get(kind), "load", None)
    if load is not None:
        context = load(context)
    else:
        context = _defaults_of(context) if kind is defaultdict else json.loads(context, object_hook=_enum_of)
    return Spec(kind, context, tuple(_made(child) for child in described["children_spec"]))


def _named_tuple(name: str) -> type:
    """The class of named tuples of that name.  Raises NotImplementedError where none was registered."""
    for cls, known in NAMED_TUPLES.items():
        if known == name:
            return cls
    raise NotImplementedError(
        f"Deserializing the named tuple {name} is not supported: no class was registered by that name"
    )


def _defaults_of(context: dict[str, Any]) -> list[Any]:
    module, name = context["default_factory_module"], context["default_factory_name"]
    return [None if module is None else getattr(importlib.import_module(module), name), context["dict_context"]]


class _Star:
    """How a leaf is shown."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: Spec) -> str:
    """The tree with * for leaves, as Python shows its containers."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))
