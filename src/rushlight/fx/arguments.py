"""What a traced program is run on: proxies for its parameters, and values for those that are not traced."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from rushlight.basics import caller
from rushlight.basics.signatures import annotations_of, signature_of
from rushlight.fx.codegen import PyTreeCodeGen, PyTreeInfo
from rushlight.tensor import Tensor
from rushlight.utils import _pytree as pytree

if TYPE_CHECKING:
    from rushlight.fx._symbolic_trace import Tracer

__all__ = ["PH", "PHBase", "PHWithMeta", "arguments"]


class PHBase:
    """In concrete arguments: this one is to be traced."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """As `PH`, with a key by which passes know the argument."""

    def __init__(self, ph_key: str | None = None):
        super().__init__()
        self.ph_key = ph_key


PH = PHBase()


def arguments(tracer: Tracer, root_fn: Callable[..., Any], is_module: bool, concrete_args: object,
              check_none: Callable[..., None]) -> tuple[Any, list[Any]]:  # fmt: skip
    """A function and the proxies and values that it is to be run on, in order.

    check_none: the step for an argument that is None; it gets the argument and the text of its error.
    Where a concrete argument is a tree with placeholders, its leaves are arguments by themselves, and the result is a list
    of leaves.
    """
    known = inspect.unwrap(root_fn)
    first, *others = [*signature_of(known).parameters.values(), None]
    if is_module and (first is None or first.kind is first.VAR_POSITIONAL):
        raise RuntimeError("``self`` argument cannot be part of *args expansion!")
    parameters = [p for p in ([] if is_module else [first]) + others if p is not None]
    given = _by_name(parameters, concrete_args)
    notes = noted(root_fn)
    parameters = [p.replace(annotation=notes.get(p.name)) for p in parameters]
    args = [_argument(tracer, parameter, given, check_none) for parameter in parameters]
    own = [tracer.root] * is_module

    def call(*values: object) -> Any:
        return _run(root_fn, own, parameters, list(values[is_module:]))

    leaves, spec = pytree.tree_flatten(tuple(args))
    if all(child.is_leaf() for child in spec.children()):
        return call, own + args
    codegen = tracer.graph._codegen = PyTreeCodeGen(PyTreeInfo([p.name for p in parameters], spec, None))

    def call_on_leaves(*values: object) -> Any:
        result, out_spec = pytree.tree_flatten(call(*own, *pytree.tree_unflatten(list(values[is_module:]), spec)))
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
        return result

    return call_on_leaves, own + leaves


def noted(fn: Callable[..., Any]) -> dict[str, Any]:
    """A function's annotations; of this package's own none, which PyTorch's functions do not have."""
    own = str(getattr(fn, "__globals__", {}).get("__name__")).startswith(("rushlight.", "torch."))
    return {} if own else annotations_of(inspect.unwrap(fn))


def _by_name(parameters: list[inspect.Parameter], concrete: Any) -> dict[str, Any]:
    if not isinstance(concrete, tuple):
        return dict(concrete or {})
    if len(concrete) != len(parameters):
        raise RuntimeError(f"concrete_args has {len(concrete)} items, but {len(parameters)} arguments are taken: "
                           "give one for each, torch.fx.PH for those that are traced")  # fmt: skip
    return {p.name: value for p, value in zip(parameters, concrete, strict=True)}


def _argument(
    tracer: Tracer, parameter: inspect.Parameter, given: dict[str, Any], check_none: Callable[..., None]
) -> object:
    """What a parameter is: a proxy, or what the concrete arguments say."""
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        return tracer.create_proxy("placeholder", f"{stars}{name}", (), {})
    default = () if parameter.default is parameter.empty else (parameter.default,)
    if name in given:
        count = iter(range(1, sys.maxsize))
        return pytree.tree_map(lambda x: _fixed(tracer, (name, next(count)), x, default, check_none), given[name])
    return tracer.create_proxy("placeholder", name, default, {}, type_expr=parameter.annotation)


def _fixed(
    tracer: Tracer, known: tuple[str, int], value: object, default: tuple[Any, ...], check_none: object
) -> object:
    """A value that is not traced stays an argument of the program, which checks that it is the same."""
    name, number = known
    proxy = tracer.create_proxy("placeholder", f"{name}_{number}", default, {})
    if isinstance(value, PHBase):
        for key, item in vars(value).items():
            setattr(proxy.node, key, item)
        return proxy
    said = f"{name} has been specialized to have value {value} but got another value"
    if value is None:
        tracer.create_proxy("call_function", check_none, (proxy, said), {})
    elif isinstance(value, bool | int | float | str):
        sys.modules[__name__.partition(".")[0]]._assert(operator.eq(proxy, value), said)
    else:
        kind = "a tensor" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        caller.warn(f"concrete_args: {name} is {kind}, and whether later calls pass the same is not checked")
    return value


def _run(fn: Callable[..., Any], own: list[Any], parameters: list[inspect.Parameter], values: list[Any]) -> Any:
    """Call a function in which `*args` and `**kwargs` are one value each, as in the program: their elements are steps."""
    by_name = {p.name: value for p, value in zip(parameters, values, strict=True)}
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    code = getattr(fn, "__code__", None)
    if isinstance(fn, FunctionType) and inspect.unwrap(fn) is fn and code is not None and code.co_flags & flags:
        return _plain(fn)(*own, *by_name.values())
    named = {p.name: by_name.pop(p.name) for p in parameters if p.kind is p.KEYWORD_ONLY}
    return fn(*own, *by_name.values(), **named)


def _plain(fn: FunctionType) -> FunctionType:
    """A function that takes what `fn` gathers by stars as one value each: in the order of its variables."""
    code, stars = fn.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    kinds = signature_of(fn).parameters.values()
    count = len(kinds)
    plain = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~stars)
    made = FunctionType(plain, fn.__globals__, fn.__name__, None, fn.__closure__)
    order = [p.name for p in kinds]
    places = [order.index(name) for name in code.co_varnames[:count]]

    def called(*values: object) -> Any:
        return made(*(values[place] for place in places))

    return called  # type: ignore[return-value]
