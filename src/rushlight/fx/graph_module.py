"""A module whose forward is a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
from typing import TYPE_CHECKING, Any

from rushlight.fx.codegen import PyTreeCodeGen
from rushlight.fx.graph import Graph
from rushlight.fx.node import map_arg
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.fx.graph import PythonCode

__all__ = ["GraphModule"]

_number = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # of `meta`, in PyTorch; libraries import its name


class GraphModule(Module):
    """A module that runs a graph.

    root: the module whose parameters and submodules the graph names, or a dictionary of them by path; graph: the steps, whose
    code is `code`.  After a change of the graph call `recompile()`.
    """

    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Each has a class of its own, since `forward` is its own; libraries know it by the name that PyTorch's has.
        named = {"__module__": GraphModule.__module__, "__qualname__": "GraphModule.__new__.<locals>.GraphModuleImpl"}
        own = type("GraphModuleImpl", (cls,), named) if "_of_one_graph" not in vars(cls) else cls
        setattr(own, "_of_one_graph", True)  # noqa: B010  (a class has no such name to mypy)
        made: GraphModule = super().__new__(own)
        return made

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        if not isinstance(root, Module | dict):
            raise RuntimeError(f"Unsupported type {root} passed for root! Give a module, or a dictionary by paths")
        type(self).__name__ = class_name
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {}))  # for passes to keep things in
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _take(self, str(node.target), root)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The steps."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The program as Python."""
        text: str = self.__dict__["_code"]
        return text

    def recompile(self) -> PythonCode:
        """Make `forward` anew from the graph; its code."""
        made = self._graph.python_code("self")
        name = f"<eval_with_key>.{next(_number)}"
        names = dict(made.globals)
        exec(compile(made.src, name, "exec"), names)
        linecache.cache[name] = (len(made.src), None, made.src.splitlines(True), name)
        self.__dict__["_code"] = made.src
        if isinstance(self._graph._codegen, PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self.__dict__.update(_in_spec=info.in_spec, _out_spec=info.out_spec)
        setattr(type(self), "forward", names["forward"])  # noqa: B010  (a method, to mypy)
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; False where something else lies on the way."""
        *path, last = target.split(".")
        owner: Any = self
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, Module())
            owner = getattr(owner, part)
            if not isinstance(owner, Module):
                return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path out; False where there is none."""
        *path, last = target.split(".")
        owner: Any = self
        for part in path:
            owner = getattr(owner, part, None)
        if not isinstance(getattr(owner, last, None), Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that no step names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    used |= {
                        f"{node.target}.{name}"
                        for name, _ in self.get_submodule(str(node.target)).named_modules()
                        if name
                    }
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as Python code, with its tensors, into a folder that can be imported."""
        from rushlight.fx.folder import to_folder

        to_folder(self, folder, module_name)

    def print_readable(self, print_output: bool = True, **_: object) -> str:
        """The module's class as Python; printed too unless `print_output` is False."""
        body = "\n".join(f"    {line}".rstrip() for line in self.code.strip().splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: Any) -> GraphModule:
        held = Module()
        held.__dict__ = copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}, memo)
        made = GraphModule(held, copy.deepcopy(self._graph), type(self).__name__)
        made.__dict__.update({k: v for k, v in held.__dict__.items() if k not in made.__dict__ or k == "training"})
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        held = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuilt, (held, steps(self._graph), type(self).__name__, self._graph._codegen)

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self.code}\n{hint}"


def steps(graph: Graph) -> list[Any]:
    """A graph's steps as plain tuples, with numbers for nodes."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    return [
        (n.op, n.target, *map_arg((n.args, n.kwargs), lambda x: _Number(numbers[x])), n.name, n.type)
        for n in graph.nodes
    ]


class _Number(int):
    """The number of a node, in a file."""


def _rebuilt(held: dict[str, Any], steps: list[Any], name: str, codegen: object = None) -> GraphModule:
    """A module from a file."""
    from rushlight.fx.node import map_aggregate

    graph = Graph()
    graph._codegen = codegen or graph._codegen
    nodes: list[Any] = []
    for op, target, args, kwargs, wish, kind in steps:
        args, kwargs = map_aggregate((args, kwargs), lambda x: nodes[x] if isinstance(x, _Number) else x)
        nodes.append(graph.create_node(op, target, args, kwargs, wish, kind))
    root = Module()
    root.__dict__.update(held)
    return GraphModule(root, graph, name)


def _take(module: GraphModule, target: str, root: Any) -> None:
    """Give the module what a step names: a submodule, parameter, buffer or attribute of `root`."""
    value = _of_dict(root, target) if isinstance(root, dict) else _of_module(root, target)
    *path, last = target.split(".")
    owner: Any = module
    for i, part in enumerate(path):
        if part not in owner._modules and not hasattr(owner, part):
            like = None if isinstance(root, dict) else _reached(root, ".".join(path[: i + 1]))
            made = Module()
            made.training = getattr(like, "training", True)
            owner.add_module(part, made)
        owner = getattr(owner, part)
    if hasattr(owner, last) and last not in ("forward",):
        return
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.register_buffer(last, value)
    elif isinstance(value, Module):
        owner.add_module(last, value)
    else:
        setattr(owner, last, value)


def _copy_attr(from_module: Module, to_module: Any, target: str) -> None:
    """Give a module what lies at a path of another: libraries that derive from `GraphModule` call it so."""
    _take(to_module, target, from_module)


class _CodeOnlyModule(Module):
    """A module with the attributes of another and nothing else: what libraries copy a `GraphModule` by."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _of_dict(root: dict[str, Any], target: str) -> object:
    if target not in root:
        raise RuntimeError(f"GraphModule: a node referenced target {target} but that target was not provided in ``root``, "
                           f"which has {sorted(root)}")  # fmt: skip
    return root[target]


def _of_module(root: Module, path: str) -> object:
    found: Any = root
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _reached(root: object, path: str) -> object:
    """What lies at a path.  Raises RuntimeError where nothing does."""
    found = root
    for part in path.split(".") if path else ():
        if not hasattr(found, part):
            raise RuntimeError(f"Node referenced nonexistent target {path}!")
        found = getattr(found, part)
    return found
