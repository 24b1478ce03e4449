"""Shapes of trees made by hand, and written as text: part of ``_pytree``."""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.basics.tree import LEAF, REGISTERED, Registered, Spec, tree_unflatten

PROTOCOL = 1  # of the text; there is no other
PLAIN: dict[str, type] = {f"{kind.__module__}.{kind.__qualname__}": kind
                          for kind in (list, tuple, dict, OrderedDict, defaultdict, deque)}  # fmt: skip


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
    context: Any = _of_defaults(spec.context) if spec.kind is defaultdict else json.dumps(spec.context)
    return {"type": name, "context": context, "children_spec": [_described(child) for child in spec.below]}


def _of_defaults(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": getattr(factory, "__module__", None),
            "default_factory_name": getattr(factory, "__qualname__", None), "dict_context": keys}  # fmt: skip


def _name_of(spec: Spec) -> str:
    kind: Any = spec.kind
    plain = f"{kind.__module__}.{kind.__qualname__}"
    if plain in PLAIN:
        return plain
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
    kind = PLAIN.get(name) or named.get(name)
    if kind is None:
        raise NotImplementedError(
            f"Deserializing {name} in a tree is not supported: no class was registered by that name"
        )
    context = described["context"]
    context = _defaults_of(context) if kind is defaultdict else json.loads(context)
    return Spec(kind, context, tuple(_made(child) for child in described["children_spec"]))


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
