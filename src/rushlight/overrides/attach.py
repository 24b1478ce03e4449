"""Where operators become public: the namespaces and Tensor get function objects that can ask overrides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from rushlight.overrides import names
from rushlight.overrides.composed import OPERANDS, Composed, Einsum, looking
from rushlight.overrides.public import OWNER, Equality, Iteration, Public, add, described, twin_of
from rushlight.tensor import Tensor


def attach(namespaces: dict[str, dict[str, Any]], autograd: Any) -> None:
    """Put public functions in the place of the operators' own, in the namespaces and as methods and attributes of Tensor."""
    autograd.grad = function(autograd.grad, "grad", "autograd")
    for name, found in list(vars(Tensor).items()):
        if name in names.SILENT_METHODS or (name.startswith("_") and not name.endswith("__") and name not in SHOWN):
            continue
        if isinstance(found, FunctionType):
            setattr(Tensor, name, method(found, name))
        elif isinstance(found, property):
            setattr(Tensor, name, attribute(found, name))
    for name, operator in names.METHOD_OF.items():
        if operator in vars(Tensor):
            OWNER[id(vars(Tensor)[name])].func = vars(Tensor)[operator]
            OWNER[id(vars(Tensor)[name])].name = f"torch.Tensor.{operator}"
    for ns, space in namespaces.items():
        if ns != "Tensor":
            for name, found in list(space.items()):
                if isinstance(found, FunctionType) and name not in names.SILENT:
                    space[name] = function(found, name, ns)
    space, functional = namespaces[""], namespaces[names.FUNCTIONAL]
    functional.update({name: space[name] for name in names.SHARED if name in functional and name in space})


SHOWN = ("_is_view", "_version", "_base")


def method(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method `name` of Tensor."""
    settings = {"python": name in names.PYTHON["Tensor"], "binary": name in names.BINARY}
    where = (names.SHOWN.get(name, name), f"Tensor.{name}", "rushlight")
    shown = f"torch.Tensor.{name}"
    if name == "__iter__":
        return add(Iteration(fn, twin_of(fn, *where), shown))
    if name == "__eq__":
        return add(Equality(fn, twin_of(fn, *where), shown, **settings))
    if name.startswith("__") or not takes_operands(fn):
        return add(Public(fn, twin_of(fn, *where), shown, **settings))
    if not declared(fn):
        return composed(Composed(fn, looking(fn, *where), shown, **settings))
    public = Public(fn, described(fn.__globals__["again"](), fn, *where[1:]), shown, **settings)
    public.twin.__globals__["public"], public.twin.__name__ = public, name
    return add(public)


def declared(fn: Callable[..., Any]) -> bool:
    """Whether a function is that of a declared operator, written out: it finds out itself what is no tensor."""
    return fn.__globals__.get("call") is fn and "again" in fn.__globals__


def takes_operands(fn: Callable[..., Any]) -> bool:
    """Whether a method has operands beside the tensor that it is a method of."""
    if hasattr(fn, "op"):
        return len(fn.op.tensors) > 1
    code = inspect.unwrap(getattr(fn, "without_out", fn)).__code__
    return not OPERANDS.isdisjoint(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def composed(public: Public) -> Callable[..., Any]:
    """Enter a function that looks at its operands."""
    public.twin.__globals__["public"] = public
    return add(public)


def attribute(found: property, name: str) -> property:
    """The attribute `name` of Tensor: a property whose functions ask."""
    parts: dict[str, Public] = {}
    for fn, way in ((found.fget, "__get__"), (found.fset, "__set__"), (found.fdel, "__delete__")):
        if fn is not None:
            parts[way] = Public(fn, twin_of(fn, way, f"Tensor.{name}", "rushlight"), f"torch.Tensor.{name}.{way}")
    read, write, remove = (add(parts[way]) if way in parts else None for way in ("__get__", "__set__", "__delete__"))
    made = property(read, write, remove, found.__doc__)
    for way, public in parts.items():
        public.func = getattr(made, way)
    return made


def native(fn: Callable[..., Any], name: str) -> bool:
    """Whether PyTorch has a function of nn.functional in C++."""
    return name in names.FUNCTIONAL_NATIVE or (declared(fn) and name not in names.FUNCTIONAL_PYTHON)


def function(fn: Callable[..., Any], name: str, ns: str) -> Callable[..., Any]:
    """The function `name` of a namespace."""
    shown = name if ns in ("", names.FUNCTIONAL, "autograd") else f"{ns}_{name}"
    python = not native(fn, name) if ns == names.FUNCTIONAL else name in names.PYTHON.get(ns, ())
    full = f"torch.{ns}.{name}" if ns else f"torch.{name}"
    where = (shown, name, f"rushlight.{ns}" if ns else "rushlight")
    if name in names.FACTORIES:
        return add(Public(fn, twin_of(fn, *where), full, factory=True))
    if declared(fn) or name in names.NOTICING:
        public = Public(fn, twin_of(fn, *where), full, python=python)
        if declared(fn):
            fn.__globals__.setdefault("public", public)
        return add(public)
    kind = Einsum if full == "torch.einsum" else Composed
    return composed(kind(fn, looking(fn, *where), full, python=python))
