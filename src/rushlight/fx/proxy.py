"""What stands for a value while a program is traced: every operation on it becomes a step of the graph."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import inspect
import operator
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.size import Size
from rushlight.dispatch.formats import memory_format
from rushlight.fx.codegen import INFIX
from rushlight.fx.graph import Graph
from rushlight.fx.node import Argument, Node, Target, leaves
from rushlight.fx.spelled import explicit
from rushlight.fx.traceback import noted
from rushlight.generator import Generator
from rushlight.overrides.public import OWNER, made
from rushlight.tensor import Tensor, layout

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

PLAIN = (
    str,
    int,
    float,
    bool,
    complex,
    dtype,
    device,
    layout,
    memory_format,
    Generator,
    type(None),
    type(...),
    enum.Enum,
)


def _where() -> str:
    """The calls that led here, of the program that is traced."""
    own, found = str(Path(__file__).parent.parent), []
    for frame, line in traceback.walk_stack(inspect.currentframe()):
        name = frame.f_code.co_filename
        if name.startswith(own) and frame.f_code.co_name == "trace":
            break
        if not name.startswith(own):
            found.append(traceback.FrameSummary(name, line, frame.f_code.co_name))
    return "".join(traceback.format_list(found[::-1]))


def _check_pure(target: Any, kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError for a function of torch that changes an argument: by its name, or by ``out``."""
    public = OWNER.get(id(target))
    if public is None or public.python:
        return
    name = getattr(target, "__name__", "")
    changes = name.endswith("_") and not name.endswith("__")
    if changes or kwargs.get("out") is not None:
        raise RuntimeError(f"Tried to trace mutable operation aten::{name}{'' if changes else '.out'}: FX only supports functional "
                           "code, and this tracer checks it; leave out check_mutable_operations to have it as a step")  # fmt: skip


class TraceError(ValueError):
    """A program does what cannot be traced: what it does next depends on values."""


class TracerBase:
    """What a tracer and a graph that is written by hand have in common: making steps and proxies."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    running: bool = False  # whether a program runs on its proxies
    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, Any]
    scope: tuple[str, Any] = ("", None)

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Put a step into the graph.  Raises RuntimeError for one that changes its arguments, where `check_mutable_operations`."""
        if kind == "call_function" and self.check_mutable_operations:
            _check_pure(target, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces and kind not in ("placeholder", "output"):
            node.stack_trace = _where()
        noted(node)
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for the result of a step."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Put a step into the graph whose arguments may hold proxies; what stands for its result."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: object) -> Argument:
        """What a step keeps for an argument, and for each of those within: nodes for proxies, a step for a dataclass.

        Raises NotImplementedError for what cannot be kept, RuntimeError for a dictionary with proxies among its keys.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = tuple(map(self.create_arg, a))
            return type(a)(*items) if hasattr(a, "_fields") else items
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(item) for key, item in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        return self._item(a)

    def _key(self, key: object) -> Argument:
        kept = self.create_arg(key)
        if any(isinstance(x, Node) for x in leaves(kept)):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {kept}")
        return kept

    def _item(self, a: object) -> Argument:
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, PLAIN) or isinstance(a, type):
            return a
        if dataclasses.is_dataclass(a):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), given)
        if callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Asked for the truth of a value.  Raises TraceError: it is not there yet."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: what is done next would depend on a "
            "value that is not there while tracing; pass it by concrete_args, or put the condition into a function under "
            "torch.fx.wrap"
        )

    def iter(self, obj: Proxy) -> Iterator[Proxy]:
        """Asked for the items of a value: known where they are unpacked into names.  Raises TraceError elsewhere."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__", "").startswith((__name__, "torch.fx.proxy")):
            frame = frame.f_back
        if frame is not None:
            step = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
            if step is not None and step.opname == "UNPACK_SEQUENCE":
                return iter([operator.getitem(obj, i) for i in range(step.argval)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument: how many items there are is not known while tracing"
        )

    def keys(self, obj: Proxy) -> Any:
        """Asked for the keys of a value, as for ``**value``: a step."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Puts steps into a graph that is there."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.module_stack, self.node_name_to_scope = {}, {}


class Proxy:
    """Stands for the result of a step: operators, methods, attributes and functions of torch on it make further steps."""

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        made(type(self))  # factories look for nobody until somebody is there
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name in ("__fx_create_arg__", "__torch_function_mode__") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return Attribute(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        if self.tracer.running:  # a copy of a value is that value to the program that is traced
            return self
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__.update({key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def keys(self) -> Any:
        """The keys of the value: a step."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __index__(self) -> int:
        raise TypeError("a Proxy cannot be an index of a list or range: its value is not there while tracing")

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        tracer = next(x.tracer for x in leaves([args, kwargs]) if isinstance(x, Proxy))
        args, kwargs = explicit(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if vars(Tensor).get(name) is func or getattr(Tensor, name, None) is func:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose shape may be asked for while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    @property
    def shape(self) -> Size:
        """The parameter's shape."""
        found: Size = self.param.shape
        return found

    def size(self, dim: int | None = None) -> Any:
        """The parameter's shape, or its extent in one dimension."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """How many elements the parameter has."""
        return int(self.param.numel())

    nelement = numel


class Attribute(Proxy):
    """An attribute of a value: a step of its own only where it is no method that is called."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The step that asks for the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(name: str, target: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def method(self: Proxy, other: object) -> Proxy:
        args = (other, self) if reflected else (self, other)
        return self.tracer.create_proxy("call_function", target, args, {})

    method.__name__ = f"__{'r' * reflected}{name}__"
    return method


def _single(name: str, target: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Proxy) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self,), {})

    method.__name__ = f"__{name}__"
    return method


for _name in (*INFIX, "getitem"):
    _plain = _name.rstrip("_")
    setattr(Proxy, f"__{_plain}__", _operator(_plain, getattr(operator, _name), False))
    if _name not in ("eq", "ne", "lt", "gt", "le", "ge", "getitem"):
        setattr(Proxy, f"__r{_plain}__", _operator(_plain, getattr(operator, _name), True))
for _name in ("neg", "pos", "invert"):
    setattr(Proxy, f"__{_name}__", _single(_name, getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
