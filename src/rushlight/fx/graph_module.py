"""A module whose forward is a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight.fx.codegen import PyTreeCodeGen
from rushlight.fx.graph import Graph, PythonCode, there
from rushlight.fx.node import Node, map_aggregate, map_arg
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

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
        self._tracer_cls, self._tracer_extras = graph._tracer_cls, graph._tracer_extras or {}
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._replace_hooks: list[Any] = []
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
        name, origin = f"<eval_with_key>.{next(_number)}", self._graph._co_fields
        if origin:
            name += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
        names = dict(made.globals)
        exec(compile(made.src, name, "exec"), names)
        linecache.cache[name] = (len(made.src), None, made.src.splitlines(True), name)
        self.__dict__.update(_code=made.src, _lineno_map=made._lineno_map)
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
        modules = dict(self.named_modules())
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module" and (called := modules.get(str(node.target))) is not None:
                    used |= {f"{node.target}.{name}" for name, _ in called.named_modules() if name}
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

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Have `f` called with each step that is put into the graph."""
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Have `f` called with each step that is taken out."""
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable[[Node, str, Node], Any]) -> None:
        """Have `f` called when a user of a step is to take another's result: with the step, the other's name and the user."""
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[[Node, str, Node], Any]) -> None:
        self._replace_hooks.remove(f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            _tell_line(error)
            raise

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = copy.copy(self)
        made._is_replica = True
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = self.meta
        return made

    def __deepcopy__(self, memo: Any) -> GraphModule:
        held = copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in _OF_GRAPH}, memo)
        return _with_all_of(held, copy.deepcopy(self._graph), type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        held = {k: v for k, v in self.__dict__.items() if k not in _OF_GRAPH}
        graph = self._graph
        return _rebuilt, (held, steps(graph), type(self).__name__, graph._codegen, _importable(graph._tracer_cls))

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self.code}\n{hint}"


_OF_GRAPH = frozenset({"_graph", "_code", "_lineno_map", "_tracer_cls", "_tracer_extras",
                       "_create_node_hooks", "_erase_node_hooks", "_replace_hooks"})  # fmt: skip


def _with_all_of(held: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """A module of a graph that has the attributes of another: submodules and tensors that no step names, too."""
    root = Module()
    root.__dict__.update(held)
    made = GraphModule(root, graph, name)
    for key, value in held.items():
        if key in ("_parameters", "_buffers", "_modules"):
            made.__dict__[key].update({k: v for k, v in value.items() if k not in made.__dict__[key]})
        else:
            made.__dict__[key] = value
    return made


def _tell_line(error: Exception) -> None:
    """Print which line of the code of a graph failed, if it was one of these: not code that it calls."""
    frames = traceback.extract_tb(error.__traceback__)
    place = max((i for i, frame in enumerate(frames) if "<eval_with_key>" in frame.filename), default=None)
    own = str(Path(__file__).parent.parent)
    if place is None or not all(frame.filename.startswith(own) for frame in frames[place + 1 :]):
        return
    if any(frame.name == "__call__" for frame in frames[place + 1 : place + 2]):  # a module, which has its own code
        return
    number = frames[place].lineno or 1
    lines = [line for _, line in sorted(_lines_around(frames[place].filename, number).items())]
    print(
        f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
        file=sys.stderr,
    )
    print("".join(lines), file=sys.stderr)


def _lines_around(filename: str, number: int) -> dict[int, str]:
    """Lines by their numbers: that one, which is marked, and its neighbours."""
    found = {i: linecache.getline(filename, i) for i in range(max(number - 2, 1), number + 3)}
    return {i: f"{'>' if i == number else ' '} {line}" for i, line in found.items() if line}


def _importable(kind: Any) -> Any:
    """A class that a file can name; None for others."""
    found: Any = sys.modules.get(getattr(kind, "__module__", ""))
    for part in getattr(kind, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return kind if found is kind else None


def steps(graph: Graph) -> list[Any]:
    """A graph's steps as plain tuples, with numbers for nodes."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    return [
        (n.op, n.target, *map_arg((n.args, n.kwargs), lambda x: _Number(numbers[x])), n.name, n.type)
        for n in graph.nodes
    ]


class _Number(int):
    """The number of a node, in a file."""


def _rebuilt(
    held: dict[str, Any], steps: list[Any], name: str, codegen: object = None, tracer_cls: object = None
) -> GraphModule:
    """A module from a file."""
    graph = Graph(tracer_cls=tracer_cls)
    graph._codegen = codegen or graph._codegen
    nodes: list[Any] = []
    for op, target, args, kwargs, wish, kind in steps:
        args, kwargs = map_aggregate((args, kwargs), lambda x: nodes[x] if isinstance(x, _Number) else x)
        nodes.append(graph.create_node(op, target, args, kwargs, wish, kind))
    return _with_all_of(held, graph, name)


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


def _get_attr(model: Module, attr_name: str) -> Any:
    """What lies at a path."""
    return _of_module(model, attr_name)


def _has_attr(model: Module, attr_name: str) -> bool:
    """Whether something lies at a path."""
    return there(model, attr_name)


def _del_attr(model: Module, attr_name: str) -> None:
    """Take out what lies at a path."""
    *path, last = attr_name.split(".")
    delattr(_of_module(model, ".".join(path)) if path else model, last)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Put something at a path, with modules on the way; a tensor that is no parameter as a buffer."""
    *path, last = target.split(".")
    owner: Any = to_module
    for part in path:
        if getattr(owner, part, None) is None:
            owner.add_module(part, Module())
        owner = getattr(owner, part)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        owner.register_buffer(last, from_obj)
    else:
        setattr(owner, last, from_obj)


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
