"""A step of a traced program: what is called, on what, and who uses the result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.fx.immutable_collections import frozen, immutable_dict, immutable_list
from rushlight.fx.names import qualified_name, type_repr

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph
    from rushlight.fx.operator_schemas import ArgsKwargsPair

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any  # a tree of nodes, numbers, strings, dtypes, ...
Target = Any  # a function, or a name

KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Any:
    """`a` with `fn` applied to what is in its tuples, lists, dictionaries and slices.

    >>> map_aggregate([1, (2, {"a": 3})], lambda x: x + 1)
    [2, (3, {'a': 4})]
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """`a` with `fn` applied to the nodes in it."""
    if not callable(fn):
        raise AssertionError(f"map_arg: fn is a function of nodes, got {fn!r}")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def leaves(a: Argument) -> list[Any]:
    """What is in the tuples, lists, dictionaries and slices of `a`."""
    found: list[Any] = []
    map_aggregate(a, found.append)
    return found


CHECKS = frozenset({"_assert", "_assert_async"})  # functions that raise, and give nothing
_impure: set[Callable[..., Any]] = set()


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Have calls of a function stay where nobody uses their result; the function."""
    _impure.add(fn)
    return fn


class Node:
    """One step.

    op: "placeholder" (an argument of the program), "get_attr" (a parameter), "call_function", "call_method", "call_module",
    "output".  target: the argument's name, the attribute's path, the function, the method's name, the module's path.
    args, kwargs: what is passed, with nodes for results of earlier steps.  users: the nodes that take this one's result.
    meta: for passes to keep things in.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ):
        if op not in KINDS:
            raise AssertionError(f"a node is one of {', '.join(KINDS)}, got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                             "Callable is expected")  # fmt: skip
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is "
                             "expected")  # fmt: skip
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self._inputs: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._args, self._kwargs = frozen(tuple(args)), frozen(dict(kwargs))
        self._inputs = {}
        map_arg((self._args, self._kwargs), self._uses)

    def _uses(self, node: Node) -> Node:
        self._inputs[node] = None
        node.users[self] = None
        return node

    @property
    def args(self) -> tuple[Argument, ...]:
        """What is passed by position."""
        return self._args  # type: ignore[no-any-return]

    @args.setter
    def args(self, values: tuple[Argument, ...]) -> None:
        self._set(values, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """What is passed by name."""
        return self._kwargs  # type: ignore[no-any-return]

    @kwargs.setter
    def kwargs(self, values: dict[str, Argument]) -> None:
        self._set(self._args, values)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among what is passed, each once."""
        return list(self._inputs)

    @property
    def next(self) -> Node:
        """The node after this one; the root after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the step was traced, if that was kept."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, text: str | None) -> None:
        self.meta["stack_trace"] = text

    def prepend(self, x: Node) -> None:
        """Move `x` to just before this node."""
        if x is self:
            return
        if x.graph is not self.graph:
            raise AssertionError(
                f"Attempting to move a Node into a different Graph: {x} is of another than {self}; node_copy() takes one over"
            )
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move `x` to just after this node."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self.graph._order = None
        self._prev._next, self._next._prev = self._next, self._prev

    @property
    def _input_nodes(self) -> dict[Node, None]:
        return self._inputs  # as PyTorch has its name

    def _at(self) -> int:
        """Its place among the nodes of its graph, which are counted when the first is asked for."""
        if self.graph._order is None:
            self.graph._order = {node: i for i, node in enumerate(self.graph.nodes)}
        return self.graph._order[self]

    def __lt__(self, other: Node) -> bool:
        return self._at() < other._at() if isinstance(other, Node) else NotImplemented

    def __le__(self, other: Node) -> bool:
        return self._at() <= other._at() if isinstance(other, Node) else NotImplemented

    def __gt__(self, other: Node) -> bool:
        return self._at() > other._at() if isinstance(other, Node) else NotImplemented

    def __ge__(self, other: Node) -> bool:
        return self._at() >= other._at() if isinstance(other, Node) else NotImplemented

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Pass something else in that place.  Raises IndexError where there is none."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Pass one thing more, before that place.  Raises AssertionError for a place beyond the arguments."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args) = {len(self.args)}, got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Pass something else under that name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users take another node's result; the users that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        chosen = [user for user in self.users if delete_user_cb(user)]
        hooks = getattr(self.graph.owning_module, "_replace_hooks", ())
        for user in chosen:
            for hook in hooks:
                hook(self, replace_with.name, user)
            user.replace_input_with(self, replace_with)
        return chosen

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever `old_input` was taken."""
        changed = map_arg((self._args, self._kwargs), lambda n: new_input if n is old_input else n)
        self._set(*changed)

    def normalized_arguments(
        self,
        root: object,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """What is passed, defaults included; None where that is not known.

        root: the module of the graph; see `torch.fx.operator_schemas.normalize_function`.
        """
        from rushlight.fx.operator_schemas import normalize_function, normalize_module

        given = (self.args, self.kwargs)
        if self.op == "call_function":
            return normalize_function(self.target, *given, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, *given, normalize_to_only_use_kwargs)
        return None

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step does more than give a result, so that it stays where nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            if self.target in _impure or name in CHECKS:
                return True
            return (name.endswith("_") and not name.endswith("__")) or self.target is operator.setitem
        return self.op == "call_module" and getattr(self._module(), "is_impure", False) is True

    def _module(self) -> Any:
        owner = self.graph.owning_module
        return None if owner is None else owner.get_submodule(self.target)

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, **_: object
    ) -> str | None:
        """The step as a line of `print(graph)`.

        placeholder_names: a list that gets a placeholder as it stands in a signature, in place of the result, which is None;
        maybe_return_typename: a list whose first item becomes what the output is annotated with.
        """
        kind = f"{type_repr(self.type)} " if self.type is not None else ""
        if self.op == "placeholder" and placeholder_names is not None:
            placeholder_names.append(str(self.target) + (f" : {type_repr(self.type)}" if self.type else ""))
            return None
        if self.op == "output" and self.type and maybe_return_typename is not None:
            maybe_return_typename[0] = f" -> {type_repr(self.type)}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self.args[0]}"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = get_attr[target={self.target}]"
        return (f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
                f"(args = {text(self.args)}, kwargs = {text(self.kwargs)})")  # fmt: skip

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        if not hasattr(target, "__name__"):
            return repr(target)
        name = qualified_name(target)
        return name.replace("_operator.", "operator.") if "." in name else f"builtins.{name}"

    def __repr__(self) -> str:
        return self.name


def text(a: object) -> str:
    """What is passed, as `print(graph)` shows it."""
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return f"({', '.join(map(text, a))}{',' * (len(a) == 1)})"
    if isinstance(a, list):
        return f"[{', '.join(map(text, a))}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key}: {text(item)}" for key, item in a.items()) + "}"
    return str(a)


_side_effectful_functions = _impure
_format_arg, _get_qualified_name, _type_repr = text, qualified_name, type_repr  # as PyTorch has their names


def linked(root: Node, forwards: bool = True) -> Iterator[Node]:
    """The nodes after the root, in order; they may be erased meanwhile."""
    node = root._next if forwards else root._prev
    while node is not root:
        if not node._erased:
            yield node
        node = node._next if forwards else node._prev
