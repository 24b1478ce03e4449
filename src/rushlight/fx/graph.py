"""A traced program: a list of steps, and the Python code that it is."""

from __future__ import annotations

import builtins
import contextlib
import copy
import inspect
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.basics import caller
from rushlight.fx.codegen import INFIX, PREFIX, CodeGen, PythonCode, PyTreeCodeGen, PyTreeInfo, written
from rushlight.fx.node import Argument, Node, Target, linked, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# How operators are written, with {} for operands.
reflectable_magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in INFIX.items()
                             if name not in ("eq", "ne", "lt", "gt", "le", "ge")}  # fmt: skip
reflectable_magic_methods |= {"div": "{} / {}", "getitem": "{}[{}]"}
magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in INFIX.items()} | reflectable_magic_methods
magic_methods |= {name: f"{PREFIX[name]}{{}}" for name in ("pos", "neg", "invert")}
inplace_methods = {f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in INFIX.items()
                   if name in reflectable_magic_methods} | {"setitem": "{}[{}] = {}"}  # fmt: skip
_PyTreeCodeGen, _PyTreeInfo = PyTreeCodeGen, PyTreeInfo  # as PyTorch has their names


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
    """Steps are put beside `mark` from now on, and where they went before at the end of the context."""

    def __init__(self, graph: Graph, mark: Node, after: bool) -> None:
        if mark.graph is not graph:
            raise AssertionError(
                f"Node to insert {'after' if after else 'before'} is not in graph: {mark} is of another"
            )
        self._graph, self._former = graph, graph._place
        graph._place = mark, after

    def __exit__(self, *error: object) -> None:
        self._graph._place = self._former


class _Transformed(contextlib.AbstractContextManager[None]):
    """Lines of code are changed from now on, until the end of the context."""

    def __init__(self, codegen: CodeGen, make: Callable[..., Any]):
        self._codegen, self._former = codegen, codegen._body_transformer
        codegen._body_transformer = make(self._former)

    def __exit__(self, *error: object) -> None:
        self._codegen._body_transformer = self._former


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
        self._place: tuple[Node, bool] = self._root, False  # steps are put before it, or after
        self._order: dict[Node, int] | None = None  # the places of nodes, until one is moved
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._co_fields: dict[str, Any] = {}  # where the function that was traced was written
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
        """The steps of a kind, and of a target where one is given.  Raises AssertionError for calls of functions without one."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op: give the function")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Put a step where steps are put: at the end, unless inside `inserting_before` or `inserting_after`.

        Raises AssertionError for arguments that are no tuple, or no dictionary.
        """
        for what, given, kind in (("args", args, tuple), ("kwargs", kwargs, dict)):
            if given is not None and not isinstance(given, kind):
                raise AssertionError(f"{what} must be a {kind.__name__}, got {type(given)}")
        node = Node(self, self._name(name or _wish(target)), op, target, args or (), kwargs or {}, type_expr)
        mark, after = self._place
        (mark.append if after else mark.prepend)(node)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def _name(self, wish: str) -> str:
        """A name that no step has yet."""
        wish = re.sub(r"\W+", "_", wish) or "_unnamed"
        wish = f"_{wish}" if wish[0].isdigit() else wish
        taken = self._names | OTHERS
        name, number = wish, int(found[1]) if (found := re.search(r"(?<=.)_(\d+)$", wish)) else 0
        stem = wish[: found.start()] if found else wish
        while name in taken or keyword.iskeyword(name):
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def placeholder(self, name: str, type_expr: object = None, default_value: object = inspect.Signature.empty) -> Node:
        """An argument of the program."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """A parameter, buffer or other attribute of the module, by its path; one that the module lacks is warned of."""
        if self.owning_module is not None and not there(self.owning_module, qualified_name):
            caller.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                f"It has no {qualified_name}: give it one by add_submodule, register_parameter or register_buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: tuple[Any, ...] | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: object = None) -> Node:  # fmt: skip
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, None, type_expr)

    def call_module(self, module_name: str, args: tuple[Any, ...] | None = None,
                    kwargs: dict[str, Any] | None = None, type_expr: object = None) -> Node:  # fmt: skip
        """A call of a submodule, by its path.  Raises AttributeError where the graph's module has none."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, None, type_expr)

    def output(self, result: Argument, type_expr: object = None) -> Node:
        """What the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def erase_node(self, to_erase: Node) -> None:
        """Take a step out; one that is out is warned of.  Raises RuntimeError where others use its result."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return caller.warn(f"erase_node({to_erase}) on an already erased node")
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True
        mark, after = self._place
        if mark is to_erase:
            self._place = (mark._prev if after else mark._next), after

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Put new steps before that one, from the call on: a context, at whose end they go where they went before.

        Default: each before all.  Raises AssertionError for a step that is not in the graph.
        """
        return _Place(self, n, False) if n is not None else _Place(self, self._root, True)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Put each new step right after that one, so that the last comes first; otherwise as `inserting_before`.

        Default: after all.
        """
        return _Place(self, n, True) if n is not None else _Place(self, self._root, False)

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

    def __deepcopy__(self, memo: object = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = copy.deepcopy(self._codegen)
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
        """Raise RuntimeError where a step is used before it ran, is another graph's, or has the name of another."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
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

    def python_code(self, root_module: str, *, verbose: bool = False, **_: object) -> PythonCode:
        """The program as the method `forward`; root_module: what its parameters are attributes of, "self"."""
        return written(self, root_module)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the function by this from now on; a module of this graph by its next `recompile()`."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Callable[[list[str]], list[str]] | None], Callable[[list[str]], list[str]]]
    ) -> contextlib.AbstractContextManager[None]:
        """Change the lines of the function's body, from the call on; a context, at whose end this was not asked.

        make_transformer: gets what changes them now, None at first, and returns a function of lines that gives lines.
        """
        return _Transformed(self._codegen, make_transformer)

    def process_inputs(self, *args: object) -> Any:
        """What the placeholders stand for, of a function's arguments: see `CodeGen`."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: object) -> Any:
        """What a function returns, of what the output step gives: see `CodeGen`."""
        return self._codegen.process_outputs(out)

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


def there(found: Any, path: str) -> bool:
    """Whether a module has something at a path."""
    for part in path.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


# Names that no step has: what Python and the code of graphs know by them.
OTHERS = frozenset((*dir(builtins), "torch", "inf", "nan", "device", "NoneType", "pytree", "fx_pytree"))


def _wish(target: Target) -> str:
    """The name that a step would like."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name.replace(".", "_"))
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return _snake_case(name) or "_"


def _snake_case(s: str) -> str:
    """A name of a class as one of a variable."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()
