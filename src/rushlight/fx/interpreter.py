"""Running a graph step by step, and transforming it while that is done."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _reached
from rushlight.fx.node import Node, Target, map_aggregate, map_arg
from rushlight.fx.proxy import GraphAppendingTracer, Proxy
from rushlight.fx.traceback import preserve_node_meta, set_current_meta

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the steps of a `GraphModule` one after another; override the method of a kind of step to do otherwise.

    garbage_collect_values: whether a result is let go after its last use.

    >>> import rushlight as torch
    >>> class Counting(torch.fx.Interpreter):
    ...     steps = 0
    ...     def run_node(self, n):
    ...         self.steps += 1
    ...         return super().run_node(n)
    >>> counting = Counting(torch.fx.symbolic_trace(lambda x: x.relu() + 1))
    >>> counting.run(torch.tensor([-1.0, 1.0])), counting.steps
    (tensor([1., 2.]), 4)
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name, self.garbage_collect_values = "Interpreter", garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            from rushlight.fx.codegen import _last_uses

            self.user_to_last_uses = _last_uses(self.graph)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """What the program returns for these arguments.  initial_env: results of steps that are known."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self._run(node)
            for done in self.user_to_last_uses.get(node, ()):
                self.env.pop(done, None)
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    def _run(self, node: Node) -> Any:
        try:
            with set_current_meta(node):
                return self.run_node(node)
        except Exception as error:
            said = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
            error.args = (f"{error.args[0]}\n\n{said}" if error.args else said, *error.args[1:])
            raise

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`; the list of arguments is emptied, so that they can go."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The result of one step."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An argument of the program.  Raises RuntimeError where it is neither given nor has a default."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a method of the first argument."""
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What lies at a path of the module."""
        return _reached(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What is passed to a step."""
        args: tuple[Any, ...] = self.map_nodes_to_values(n.args, n)
        kwargs: dict[str, Any] = self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    def map_nodes_to_values(self, args: object, n: Node) -> Any:
        """A tree with results in place of nodes."""
        return map_arg(args, lambda used: self.env[used])


class Transformer(Interpreter):
    """An interpreter on proxies: `transform()` gives a module of the steps that it made."""

    def __init__(self, module: Any):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(self.graph._codegen)
        self.tracer: Any = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An argument of the new program."""
        default = next(iter(args), inspect.Signature.empty)
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule, kept as it is."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function, kept as it is."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the steps that running on proxies made."""
        with preserve_node_meta():
            result = super().run(enable_io_processing=False)
        last = self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x))
        last.meta = dict(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
