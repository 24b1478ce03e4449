"""A graph as Python code."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import operator
import re
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.tree import Spec
from rushlight.dispatch.formats import memory_format
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.annotations import annotation
from rushlight.fx.names import name_of, public_path, room
from rushlight.fx.node import Node
from rushlight.tensor import layout
from rushlight.utils import _pytree as pytree

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["INFIX", "PREFIX", "CodeGen", "PyTreeCodeGen", "PyTreeInfo", "PythonCode"]

TORCH = sys.modules[__name__.partition(".")[0]]  # what the code knows by that name
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
    """How a graph becomes a function; derive from it, and hand an object to `Graph.set_codegen`, for other signatures.

    `process_inputs` and `process_outputs` do to what `Interpreter.run` is given and gives what the function's own first and
    last lines do.
    """

    # Takes the lines of the function's body, and gives those that are to be there: see `Graph.on_generate_code`.
    _body_transformer: Callable[[list[str]], list[str]] | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function.  free_vars: its parameters with annotations and defaults."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: object, *, descs: object = None) -> str:
        """The line that ends it: a return of this."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: object) -> Any:
        """What the placeholders stand for, of the arguments of `Interpreter.run`."""
        return args

    def process_outputs(self, outputs: object) -> Any:
        """What `Interpreter.run` returns, of what the output step gives."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the function needs, beside those of its steps."""
        return []


class PyTreeInfo(typing.NamedTuple):
    """orig_args: the names of the arguments; in_spec: their trees; out_spec: the tree that is returned."""

    orig_args: list[str]
    in_spec: Spec
    out_spec: Spec | None


class PyTreeCodeGen(CodeGen):
    """A function whose arguments are trees of what the placeholders stand for."""

    def __init__(self, pytree_info: PyTreeInfo):
        self.pytree_info = pytree_info

    def process_inputs(self, *args: object) -> Any:
        """The leaves of the arguments."""
        return pytree.tree_leaves(args)

    def process_outputs(self, outputs: Any) -> Any:
        """The tree that has these leaves."""
        spec = self.pytree_info.out_spec
        return outputs if spec is None else pytree.tree_unflatten(list(outputs), spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The lines that begin the function: its leaves are unpacked."""
        names = self.pytree_info.orig_args
        plain = [name.partition(" ")[0] for name in free_vars if name != "self"]
        first = super().gen_fn_def(["self", *names], maybe_return_annotation)
        if not plain:
            return first
        return f"{first}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"

    def generate_output(self, output_args: object, *, descs: object = None) -> str:
        """The line that ends it: a tree is returned."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"


class _Text(str):
    """Code whose `repr` it is itself."""

    def __repr__(self) -> str:
        return str(self)


def written(graph: Graph, root: str) -> PythonCode:
    """A graph as Python code."""
    codegen: CodeGen = graph._codegen
    found: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "device": device, "torch": TORCH}
    found.update(pytree=pytree, fx_pytree=fx_pytree)
    found.update(codegen.additional_globals())
    given, lines, wrapped = [], [], dict[str, None]()
    numbers: list[int] = []  # of the nodes that the lines are of
    last, returned = _last_uses(graph), ""
    for number, node in enumerate(graph.nodes):
        if node.op == "placeholder":
            given.append(_parameter(node, found))
            name = str(node.target).lstrip("*")
            lines += [f"{node.name} = {name}"] if name != node.name else []
        elif node.op == "output":
            returned = "" if node.type is None else f" -> {_annotation(node.type, found)}"
            lines.append(codegen.generate_output(_Text(_argument(node.args[0], found))))
        else:
            done = [n.name for n in last.get(node, ())]
            line = _line(node, root, found)
            lines.append(line + (f";  {' = '.join(done)} = None" if done else ""))
            if node.op == "call_function" and node.meta.get("is_wrapped"):
                wrapped[_global(node.target, found)] = None
        numbers += [number] * (len(lines) - len(numbers))
    made = _joined(codegen, given, lines or ["pass"], returned, wrapped, found)
    made._lineno_map.update(_numbered(made.src.partition("):\n")[2].splitlines(), lines, numbers))
    return made


def _numbered(body: list[str], lines: list[str], numbers: list[int]) -> dict[int, int | None]:
    """For the lines of a body, from 1 on, the nodes that they are of: what somebody put among them is of the node before."""
    known: dict[int, int | None] = {}
    place, at = 0, None
    for i, line in enumerate(body, 1):
        if place < len(lines) and line.strip() == lines[place].strip():
            at, place = numbers[place], place + 1
        known[i] = at
    return known


def _joined(codegen: CodeGen, given: list[str], lines: list[str], returned: str, wrapped: dict[str, None],
            found: dict[str, Any]) -> PythonCode:  # fmt: skip
    """The parts as one text."""
    if codegen._body_transformer is not None:
        lines = codegen._body_transformer([f"{line}\n" for line in lines])
    body = "".join(f"    {line}\n" for line in "".join(f"{line.rstrip()}\n" for line in lines).splitlines())
    first = "".join(f'torch.fx._symbolic_trace.wrap("{name}")\n' for name in wrapped)
    return PythonCode(f"\n{first or chr(10)}\n{codegen.gen_fn_def(given, returned)}\n{body}    ", found)


def _annotation(kind: object, found: dict[str, Any]) -> str:
    def keep(wish: str, value: Any) -> str:
        found[wish] = value
        return wish

    return annotation(kind, lambda value: _global(value, found), keep)


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
    return f"{node.target}{_typed(node, found)}{default}"


def _typed(node: Node, found: dict[str, Any]) -> str:
    return "" if node.type is None else f" : {_annotation(node.type, found)}"


def _line(node: Node, root: str, found: dict[str, Any]) -> str:
    """A step as a line of code."""
    return f"{node.name}{_typed(node, found)} = {_expression(node, root, found)}"


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


def _global(value: object, found: dict[str, Any]) -> str:
    """A name for a function or class that the code needs."""
    name = name_of(value)
    if value is type(None):
        return "NoneType"
    if getattr(builtins, name, None) is value or found.get(name) is value:
        return name
    path = public_path(value)
    if path is not None:
        return path
    module = room(value)
    unique = wish = re.sub(r"\W", "_", f"{module}.{name}" if module else name)
    number = 0
    while unique in found and found[unique] is not value:
        number += 1
        unique = f"{wish}_{number}"
    found[unique] = value
    return unique


def _argument(a: object, found: dict[str, Any]) -> str:
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
    if isinstance(a, range):
        return repr(a)
    if isinstance(a, enum.Enum):
        return f"{_global(type(a), found)}.{a.name}"
    if isinstance(a, slice):
        return f"slice({_argument(a.start, found)}, {_argument(a.stop, found)}, {_argument(a.step, found)})"
    if (
        isinstance(a, dtypes.dtype | memory_format | device)
        or callable(a)
        or not isinstance(a, str | int | float | complex | type(None) | type(...) | bytes)
    ):
        return _object(a, found)
    return repr(a)


def _object(a: object, found: dict[str, Any]) -> str:
    """An object that has no notation: a name for it."""
    if isinstance(a, device):
        return repr(a)
    if isinstance(a, dtypes.dtype | memory_format):
        return f"torch.{a.name}"
    if isinstance(a, layout):
        return repr(a)
    return _global(a, found)
