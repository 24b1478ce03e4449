"""A traced program: a list of steps, and the Python code that it is."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import math
import operator
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.fx.node import Argument, Node, Target, linked, map_arg

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.basics.dtypes import dtype

__all__ = ["CodeGen", "Graph", "PythonCode"]

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "gt": ">",
    "le": "<=", "ge": ">=",
}  # fmt: skip
PREFIX = {"neg": "-", "pos": "+", "invert": "~", "not_": "not "}


@dataclass
class PythonCode:
    """Code: its text and the names that it needs; line numbers are counted from the text's first line."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] = field(default_factory=dict)


class CodeGen:
    """How a graph becomes a function; here for classes derived from it."""


class NodeList:
    """The nodes of a graph in order; `reversed` works, and nodes may be put in or erased meanwhile."""

    def __init__(self, graph: Graph, forwards: bool = True):
        self.graph, self.forwards = graph, forwards

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        return linked(self.graph._root, self.forwards)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, not self.forwards)

    def __repr__(self) -> str:
        return repr(list(self))


class _Place(contextlib.AbstractContextManager[None]):
    """Steps are put before `before` from now on, and where they went before at the end of the context."""

    def __init__(self, graph: Graph, before: Node) -> None:
        self._graph, self._former = graph, graph._before
        graph._before = before

    def __exit__(self, *error: object) -> None:
        self._graph._before = self._former


class Graph:
    """The steps of a program, made by `Tracer.trace` or one by one.

    >>> import operator, rushlight as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(operator.add, (x, 1))
    >>> _ = graph.output(y)
    >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None):
        self._root = Node(self, "", "root", "", (), {})
        self._names: set[str] = set()
        self._before: Node = self._root
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._codegen: Any = CodeGen()

    @property
    def nodes(self) -> NodeList:
        """The steps in order."""
        return NodeList(self)

    def output_node(self) -> Node:
        """The step that returns.  Raises RuntimeError where there is none."""
        for node in reversed(self.nodes):
            if node.op == "output":
                return node
        raise RuntimeError("the graph has no output node: add one with graph.output(result)")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The steps of a kind, and of a target where one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Put a step where steps are put: at the end, unless inside `inserting_before` or `inserting_after`."""
        node = Node(self, self._name(name or _wish(target)), op, target, args or (), kwargs or {}, type_expr)
        self._before.prepend(node)
        return node

    def _name(self, wish: str) -> str:
        """A name that no step has yet."""
        wish = re.sub(r"\W+", "_", wish) or "_unnamed"
        wish = f"_{wish}" if wish[0].isdigit() else wish
        taken = self._names | set(dir(builtins)) | {"torch", "self", "math", "inf", "nan", "device"}
        name, number = wish, int(found[1]) if (found := re.search(r"_(\d+)$", wish)) else 0
        stem = wish[: found.start()] if found else wish
        while name in taken or keyword.iskeyword(name):
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the program."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module, by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None,
                      name: str | None = None) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, None, type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a submodule, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, None, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def erase_node(self, to_erase: Node) -> None:
        """Take a step out.  Raises RuntimeError where others use its result."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True
        if self._before is to_erase:
            self._before = to_erase._next

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Put new steps before that one, from the call on: a context, at whose end they go where they went before."""
        return _Place(self, self._root._next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Put new steps after that one, from the call on: a context, at whose end they go where they went before."""
        return _Place(self, (self._root if n is None else n)._next)

    def node_copy(self, node: Node, arg_transform: Callable[..., Any] = lambda x: x) -> Node:
        """A step of another graph, taken over; `arg_transform` says which nodes stand here for its inputs."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Take over all steps of another graph; what it returns.  val_map: filled with which node stands for which."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, {}, return_output_node=True)
        if found is not None:
            made.output(found[0], found[1].type).meta = dict(found[1].meta)
        return made

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Take out the steps whose results nobody uses; whether there were any."""
        changed = False
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raise RuntimeError where a step is used before it ran, or is another graph's."""
        seen: set[Node] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as "
                                       "an argument! If you are copying nodes from another graph, make sure to use "
                                       "`arg_transform` of node_copy()")  # fmt: skip
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it has been defined! Please "
                                       "check that Nodes in the graph are topologically ordered")  # fmt: skip
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                self._lint_path(node)
            seen.add(node)

    def _lint_path(self, node: Node) -> None:
        found = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {found}"
                )
            found = getattr(found, part)

    def python_code(self, root_module: str, *, verbose: bool = False, **_: Any) -> PythonCode:
        """The program as the method `forward`; root_module: what its parameters are attributes of, "self"."""
        return written(self, root_module)

    def print_tabular(self) -> None:
        """Print the steps as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        print(
            "\n".join(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
            )
        )

    def __str__(self) -> str:
        lines = [line for line in (node.format_node() for node in self.nodes) if line is not None]
        return "graph():" + "".join(f"\n    {line}" for line in lines)


def _wish(target: Target) -> str:
    """The name that a step would like."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name.replace(".", "_"))
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() or "_"


def written(graph: Graph, root: str) -> PythonCode:
    """A graph as Python code."""
    found: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None)}
    arguments, lines, last = [], [], _last_uses(graph)
    for node in graph.nodes:
        if node.op == "placeholder":
            arguments.append(_parameter(node, found))
            name = str(node.target).lstrip("*")
            lines += [f"{node.name} = {name}"] if name != node.name else []
        elif node.op == "output":
            lines.append(f"return {_argument(node.args[0], found)}")
        else:
            done = [n.name for n in last.get(node, ())]
            line = _line(node, root, found)
            lines.append(line + (f";  {' = '.join(done)} = None" if done else ""))
    body = "".join(f"    {line}\n" for line in lines or ["pass"])
    src = f"\n\n\ndef forward({', '.join([root.split('.')[0], *arguments])}):\n{body}    "
    return PythonCode(src, found)


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each step the nodes that nobody needs after it, whose memory can go."""
    ends: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                ends.setdefault(node, []).append(used)
        if not node.users and node.op not in ("placeholder", "output"):
            ends.setdefault(node, []).append(node)
    return ends


def _parameter(node: Node, found: dict[str, Any]) -> str:
    """A placeholder among the parameters of `forward`."""
    default = f" = {_argument(node.args[0], found)}" if node.args else ""
    kind = f" : {node.type.__name__}" if node.type in (int, float, bool, str) else ""
    return f"{node.target}{kind}{default}"


def _line(node: Node, root: str, found: dict[str, Any]) -> str:
    """A step as a line of code."""
    return f"{node.name} = {_expression(node, root, found)}"


def _expression(node: Node, root: str, found: dict[str, Any]) -> str:
    args = [_argument(a, found) for a in node.args]
    if node.op == "get_attr":
        return _path(root, str(node.target))
    if node.op == "call_module":
        return f"{_path(root, str(node.target))}({_passed(args, node, found)})"
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({_passed(args[1:], node, found)})"
    short = _short(node.target, args) if not node.kwargs else None
    return short or f"{_global(node.target, found)}({_passed(args, node, found)})"


def _short(target: Callable[..., Any], args: list[str]) -> str | None:
    """An operator or attribute in Python's own notation."""
    name = getattr(target, "__name__", "")
    if getattr(operator, name, None) is target:
        if name in INFIX and len(args) == 2:
            return f"{args[0]} {INFIX[name]} {args[1]}"
        if name in PREFIX and len(args) == 1:
            return f"{PREFIX[name]}{args[0]}"
        if name == "getitem":
            return f"{args[0]}[{args[1]}]"
    return (
        f"{args[0]}.{args[1][1:-1]}" if target is getattr and len(args) == 2 and args[1][1:-1].isidentifier() else None
    )


def _passed(args: list[str], node: Node, found: dict[str, Any]) -> str:
    return ", ".join([*args, *(f"{key} = {_argument(value, found)}" for key, value in node.kwargs.items())])


def _path(root: str, target: str) -> str:
    """An attribute by its path; parts that are no names are asked for by `getattr`."""
    text = root
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        text = f"{text}.{part}" if plain else f'getattr({text}, "{part}")'
    return text


def _global(value: Any, found: dict[str, Any]) -> str:
    """A name for a function or class that the code needs."""
    name = getattr(value, "__name__", type(value).__name__)
    if getattr(builtins, name, None) is value:
        return str(name)
    module = re.sub(r"^rushlight(\.(ops|dispatch)\b.*)?", "torch", getattr(value, "__module__", None) or "")
    inner = module.startswith("torch")  # what torch itself shows is known by that name, wherever it is defined
    public = (inner and _public(f"torch.{name}", value, found)) or _public(f"{module}.{name}", value, found)
    if public is not None:
        return public
    wish = re.sub(r"\W", "_", f"{module}.{name}") if module else re.sub(r"\W", "_", name)
    unique, number = wish, 0
    while unique in found and found[unique] is not value:
        number += 1
        unique = f"{wish}_{number}"
    found[unique] = value
    return unique


def _public(path: str, value: Any, found: dict[str, Any]) -> str | None:
    """The path from `torch` on under which a function, class or dtype is known; None for others."""
    torch = sys.modules[__name__.partition(".")[0]]
    first, *parts = path.split(".")
    if first != "torch" or found.get("torch", torch) is not torch:
        return None
    if len(parts) > 1:  # linalg_norm is torch.linalg.norm
        parts[-1] = parts[-1].removeprefix(f"{parts[-2]}_")
    at: Any = torch
    for part in parts:
        at = getattr(at, part, None)
    if at is not value:
        return None
    found["torch"] = torch
    return ".".join(("torch", *parts))


def _argument(a: Any, found: dict[str, Any]) -> str:
    """What is passed, as code."""
    if isinstance(a, Node):
        return a.name
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return f"{_global(type(a), found)}({', '.join(_argument(item, found) for item in a)})"
    if isinstance(a, tuple):
        return f"({', '.join(_argument(item, found) for item in a)}{',' * (len(a) == 1)})"
    if isinstance(a, list):
        return f"[{', '.join(_argument(item, found) for item in a)}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key!r}: {_argument(item, found)}" for key, item in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({_argument(a.start, found)}, {_argument(a.stop, found)}, {_argument(a.step, found)})"
    if (
        isinstance(a, dtypes.dtype | device)
        or callable(a)
        or not isinstance(a, str | int | float | complex | type(None) | type(...) | bytes)
    ):
        return _object(a, found)
    return repr(a)


def _object(a: dtype, found: dict[str, Any]) -> str:
    """An object that has no notation: a name for it."""
    if isinstance(a, dtypes.dtype):
        return _public(f"torch.{a.name}", a, found) or _global(a, found)
    return _global(a, found)
