"""Tracing: run a module or function once on proxies, and keep what it does."""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from rushlight.fx.arguments import PH, PHBase, PHWithMeta, arguments, noted
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import leaves
from rushlight.fx.proxy import ParameterProxy, Proxy, TracerBase
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_wrapped: list[tuple[dict[str, Any], str]] = []  # globals of a module, name of a function in them
WRAPPED = "__fx_wrapped__"  # in the code of a GraphModule: the names of such functions in it
_tracing = 0


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _tracing > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being traced."""
    return is_fx_tracing()


def _assert_is_none(value: object, msg: str) -> None:
    """Raises AssertionError with this text unless the value is None: a step of programs with such an argument."""
    if value is not None:
        raise AssertionError(msg)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let a function of the calling module be a step by itself, which tracing does not look into.

    fn_or_name: the function, or its name; called at the top of a module, or as a decorator.

    >>> import rushlight as torch
    >>> @torch.fx.wrap
    ... def half(x):
    ...     return x / 2 if x.sum() > 0 else x
    >>> traced = torch.fx.symbolic_trace(lambda x: half(x) + 1)
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'call_function', 'call_function', 'output']
    """
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    if "__name__" in caller.f_globals:
        _wrapped.append((caller.f_globals, name))
    else:  # the code of a GraphModule, which comes and goes
        caller.f_globals.setdefault(WRAPPED, []).append(name)
    return fn_or_name


class ProxyableClassMeta(type):
    """A metaclass for classes whose instances may be made of proxies while tracing."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = [x for x in leaves([args, kwargs]) if isinstance(x, Proxy)]
        if not found:
            return super().__call__(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs)


class Tracer(TracerBase):
    """Traces; derive from it to say which modules are steps by themselves, or how steps are made.

    autowrap_modules: modules whose functions are steps when they get proxies; autowrap_functions: more such functions;
    param_shapes_constant: whether shapes of parameters may be asked for.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ):
        self._autowrap = {id(f) for m in autowrap_modules for f in vars(m).values() if callable(f)}
        self._autowrap |= {id(f) for f in autowrap_functions}
        self._searched = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.module_stack: dict[str, Any] = {}
        self.num_calls: dict[str, int] = {}
        self.scope: tuple[str, Any] = ("", None)
        self.node_name_to_scope: dict[str, Any] = {}
        self.root: Any = None
        self.tensor_attrs: dict[int, str] = {}
        self.traced_func_name = "forward"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = memo[id(self)] = object.__new__(type(self))
        modules = {"_searched": [*self._searched]}  # which cannot be copied
        own = {key: value for key, value in self.__dict__.items() if key not in modules}
        made.__dict__.update(copy.deepcopy(own, memo), **modules)
        return made

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is a step by itself: those of `torch.nn` but Sequential, unless this is overridden."""
        from rushlight.nn import Sequential

        name = type(m).__module__
        return name.startswith(("torch.nn", "rushlight.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule of what is traced.  Raises NameError where it is none."""
        for name, found in self.root.named_modules():
            if found is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What becomes of a call of a submodule: a step, or what its forward does."""
        path = self.path_of_module(m)
        times = self.num_calls[path] = self.num_calls.get(path, -1) + 1
        key, former, self.scope = f"{path}@{times}" if times else path, self.scope, (path, type(m))
        self.module_stack[key] = self.scope
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(key, None)
            self.scope = former

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module is while tracing: a step for parameters, and for buffers where that is asked for."""
        wanted = isinstance(attr_val, Parameter) or (self.proxy_buffer_attributes and isinstance(attr_val, Tensor))
        name = self._path_of_tensor(attr_val) if wanted else None
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            factory = None
            if self.param_shapes_constant:
                factory = lambda node: ParameterProxy(self, node, name, attr_val)  # noqa: E731
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
        return parameter_proxy_cache[name]

    def _path_of_tensor(self, value: Tensor) -> str | None:
        for name, found in (*self.root.named_parameters(), *self.root.named_buffers()):
            if found is value:
                return str(name)
        return self.tensor_attrs.get(id(value))

    def create_arg(self, a: object) -> Any:
        """What a step keeps for an argument: nodes for proxies, parameters and modules, a step that makes a named tuple."""
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        return super().create_arg(a)

    def _item(self, a: Any) -> object:
        if isinstance(a, Parameter) and self._path_of_tensor(a) is None:
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a) or self._kept("_tensor_constant", a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        try:
            return super()._item(a)
        except NotImplementedError:
            if type(a).__module__ == "builtins":
                raise
            return self.create_node("get_attr", self._kept(f"_{type(a).__name__}_constant_", a), (), {})

    def _kept(self, stem: str, value: Tensor) -> str:
        """A tensor or object that is no attribute of the module, made one."""
        name = self.get_fresh_qualname(stem)
        setattr(self.root, name, value)
        if isinstance(value, Tensor):
            self.tensor_attrs[id(value)] = name
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with that beginning that the module has not."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args: arguments that are not traced, by name: values, or trees with `PH` where something is to be traced.
        """
        global _tracing
        self.root, fn = (root, type(root).forward) if isinstance(root, Module) else (Module(), root)
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {id(v): n for m, module in self.root.named_modules()
                             for n, v in ((f"{m}.{k}".lstrip("."), v) for k, v in vars(module).items())
                             if isinstance(v, Tensor)}  # fmt: skip
        if (code := getattr(fn, "__code__", None)) is not None:
            self.graph._co_fields = {name: getattr(code, name) for name in ("co_name", "co_filename", "co_firstlineno")}
        call, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        kind = noted(fn).get("return")
        _tracing += 1
        self.running = True
        try:
            with self._patched(fn):
                self.create_node("output", "output", (self.create_arg(call(*args)),), {}, type_expr=kind)
        finally:
            _tracing -= 1
            self.running = False
        return self.graph

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: object = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """A function, and what it is to be run on: proxies for its parameters, but what `concrete_args` has for its names."""
        return arguments(self, root_fn, is_module, concrete_args, _assert_is_none)

    @contextlib.contextmanager
    def _patched(self, fn: Callable[..., Any]) -> Iterator[None]:
        """Calls of modules, attributes of modules and wrapped functions come to this tracer inside."""
        undo = contextlib.ExitStack()
        cache: dict[str, Any] = {}
        call, lookup, tracer = Module.__call__, Module.__getattr__, self

        def calling(module: Module, *args: object, **kwargs: object) -> Any:
            return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def looking(module: Module, name: str) -> Any:
            return tracer.getattr(name, lookup(module, name), cache)

        with undo:
            _patch(undo, Module, "__call__", calling)
            _patch(undo, Module, "__getattr__", looking)
            rooms = [vars(module) for module in self._searched]
            if isinstance(fn, FunctionType):
                rooms.append(fn.__globals__)
            for names in rooms:
                for name, value in list(names.items()):
                    if id(value) in self._autowrap and not name.startswith("_"):
                        _patch_item(undo, names, name, _recording(value))
            for names, name in (*_wrapped, *_wrapped_in(self.root, fn)):
                value = names.get(name, getattr(builtins, name, None))
                if value is not None:
                    _patch_item(undo, names, name, _recording(value))
            yield


def _wrapped_in(root: Module, fn: Callable[..., Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The wrapped functions that the code of traced programs inside this one calls."""
    for each in (fn, *(type(module).forward for module in root.modules() if isinstance(module, GraphModule))):
        names = getattr(each, "__globals__", {})
        yield from ((names, name) for name in dict.fromkeys(names.get(WRAPPED, ())))


def _patch(undo: contextlib.ExitStack, owner: type[Any], name: str, value: Callable[..., Any]) -> None:
    if name in vars(owner):
        undo.callback(setattr, owner, name, vars(owner)[name])
    else:  # it has it from a class that it derives from
        undo.callback(delattr, owner, name)
    setattr(owner, name, value)


def _patch_item(undo: contextlib.ExitStack, names: dict[str, Any], name: str, value: Callable[..., Any]) -> None:
    if name in names:
        undo.callback(names.__setitem__, name, names[name])
    else:
        undo.callback(names.pop, name, None)
    names[name] = value


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is a step where it gets a proxy."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        proxies = [x for x in leaves([list(args), dict(kwargs)]) if isinstance(x, Proxy)]
        if not proxies:
            return function(*args, **kwargs)
        made = proxies[0].tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what `root` does, from a graph of its steps.

    root: a module or function, run once on proxies.  concrete_args: arguments that are not traced.  Raises TraceError where
    what is done depends on values.

    >>> import rushlight as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    >>> [str(node.target) for node in traced.graph.nodes]
    ['input', '0', '1', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", type(root).__name__)
    return GraphModule(tracer.root, graph, name)
