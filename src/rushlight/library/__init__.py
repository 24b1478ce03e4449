"""``torch.library``: operators of one's own, from Python functions (`custom_op`) or by declaration (`Library`)."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from rushlight.basics.dtypes import dtype
from rushlight.library import namespaces
from rushlight.library.checks import OpCheckError, opcheck
from rushlight.library.custom import KEYS, CustomOpDef, custom_op, named
from rushlight.library.operators import Declared, DeclaredPacket
from rushlight.library.schema import infer_schema, parsed
from rushlight.library.tags import as_tags

__all__ = ["CustomOpDef", "Library", "OpCheckError", "_scoped_library", "custom_op", "define", "fallthrough_kernel",
           "get_ctx", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
           "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
           "wrap_triton"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
_defined: set[str] = set()  # namespaces that a Library of the kind DEF has


class Library:
    """Operators of one namespace, declared and given what computes them.

    ns: the namespace; kind: "DEF" for the one that declares it, "FRAGMENT" for more declarations, "IMPL" for what computes
    operators of others; dispatch_key: what `impl` registers for by default.

    >>> import rushlight as torch
    >>> library = torch.library.Library("documented", "FRAGMENT")
    >>> library.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    >>> torch.ops.documented.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if kind == "DEF" and (ns in _defined or ns in ("aten", "prim", "prims")):
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; put all of your definitions in a "
                "single one, or declare more of them in a Library of the kind 'FRAGMENT'"
            )
        if kind == "DEF":
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._declared: list[Declared] = []
        self._awaited: set[str] = set()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: object = ()) -> str:
        """Declare an operator, "f(Tensor x, int n=2) -> Tensor"; its name."""
        if self.kind == "IMPL":
            raise RuntimeError("a Library of the kind 'IMPL' declares no operators: make it a 'FRAGMENT'")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        op = Declared(parsed(f"{self.ns}::{schema.strip()}"))
        known = namespaces.packets.get(op.namespace, {}).get(op._opname)
        if known is not None and op._overloadname in known._overloads:
            raise RuntimeError(f"Tried to register an operator ({op._schema}) with the same name and overload name multiple "
                               "times: declare it once")  # fmt: skip
        self._declared.append(op)
        op.tags = as_tags(tags)
        namespaces.register(op)
        name = op.name().partition("::")[2]
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Say what computes an operator for a dispatch key: CPU, Meta, Autograd, CompositeImplicitAutograd, ..."""
        if not isinstance(op_name, str | Declared | DeclaredPacket):
            raise RuntimeError("impl should be passed either a name or an OpOverload object as the first argument, got "
                               f"{type(op_name)}")  # fmt: skip
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if with_keyset:
            raise NotImplementedError("Library.impl: there are no keysets to pass on; register a function without one")
        op = op_name if isinstance(op_name, Declared | DeclaredPacket) else f"{self.ns}::{op_name}"
        self._awaited |= {name for name in (add_kernel(op, key, fn),) if name}

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1) -> None:
        overload(f"{self.ns}::{op_name}").fake = fn

    def _destroy(self) -> None:
        """Forget the operators that this declared."""
        namespaces.forget(self._declared)
        self._declared = []
        for name in self._awaited:
            namespaces.awaited.pop(name, None)
        _defined.difference_update({self.ns} if self.kind == "DEF" else ())

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *raised: object) -> None:
        self._destroy()


def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Library:
    """A `Library` for a ``with``, whose operators are forgotten at the end of the block."""
    return Library(ns, kind, dispatch_key)


def overload(op: object) -> Declared:
    """The operator that a name, packet, overload or `CustomOpDef` means.  Raises RuntimeError for one that is not there."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, Declared):
        return op
    if isinstance(op, DeclaredPacket):
        return op._overloads["default"] if "default" in op._overloads else next(iter(op._overloads.values()))
    if not isinstance(op, str):
        raise ValueError(f"op must be an operator or its name, e.g. torch.ops.aten.sin.default, got {type(op)}")
    namespace, _, rest = op.partition("::")
    if not rest:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {op}')
    name, _, which = rest.partition(".")
    packet = namespaces.packets.get(namespace, {}).get(name)
    if packet is None or (which or next(iter(packet._overloads))) not in packet._overloads:
        raise RuntimeError(
            f"operator {op} does not exist: declare it with torch.library.define or custom_op first; operators of the "
            "library itself cannot be replaced"
        )
    return packet._overloads[which or ("default" if "default" in packet._overloads else next(iter(packet._overloads)))]


def add_kernel(op: object, key: str, function: Callable[..., Any]) -> str:
    """Let a function compute an operator for a dispatch key: at once, or when it is declared; its name in that case, else ""."""
    if isinstance(op, str) and op.partition("::")[0] not in ("aten", "prim", "prims") and not namespaces.has(op):
        namespaces.awaited.setdefault(op.removesuffix(".default"), {})[key] = function
        return op.removesuffix(".default")
    overload(op).add_kernel(key, function)
    return ""


def define(
    qualname: str, schema: str, *, lib: Library | None = None, tags: object = (), alias_analysis: str = ""
) -> None:
    """Declare an operator: ``define("my::twice", "(Tensor x) -> Tensor")``."""
    op = Declared(named(schema.strip(), qualname))
    op.tags = as_tags(tags)
    namespaces.register(op)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Say what computes an operator on devices ("cpu") or for dispatch keys; as a decorator where `func` is not given.

    The older form ``impl(library, name, dispatch_key="")`` is a decorator too.
    """
    if isinstance(qualname, Library):
        library, key = qualname, "" if func is None else func

        def old(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(types, function, key)
            return function

        return old

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in [types] if isinstance(types, str) else types:
            key = "CompositeExplicitAutograd" if kind == "default" else KEYS.get(kind, kind)
            add_kernel(qualname, key, function)
        return function

    return keep if func is None else keep(func)


def register_kernel(
    op: object, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Say what computes an operator on devices."""
    return impl(
        op if isinstance(op, str) else overload(op).name(), "default" if device_types is None else device_types, func
    )


@typing.overload
def register_fake(
    op: object, func: None = None, /, *, lib: object = None, _stacklevel: int = 1, allow_override: bool = False
) -> Callable[[F], F]: ...


@typing.overload
def register_fake(
    op: object, func: F, /, *, lib: object = None, _stacklevel: int = 1, allow_override: bool = False
) -> F: ...


def register_fake(
    op: object,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: object = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Say what gives tensors of the right shapes without computing."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        overload(op).fake = function
        return function

    return keep if func is None else keep(func)


def register_autograd(
    op: object, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Give an operator its formula: ``backward(ctx, *grads)`` and ``setup_context(ctx, inputs, output)``.

    Raises RuntimeError for an operator that changes its arguments, NotImplementedError for one with tensors by keyword alone.
    """
    overload(op).give_formula(backward, setup_context)


def register_vmap(op: object, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator its rule for vmap: ``func(info, in_dims, *args)`` returns results and their batch dimensions."""

    def keep(function: Callable[..., Any]) -> None:
        overload(op).batching = function

    return keep if func is None else keep(func)


def register_autocast(op: object, device_type: str, cast_inputs: dtype, /, *, lib: Library | None = None) -> None:
    """Convert floating-point arguments of an operator, but those of float64, to this dtype within autocast."""
    overload(op).give_casts(device_type, cast_inputs)


def register_torch_dispatch(
    op: object, torch_dispatch_class: object, func: Callable[..., Any] | None = None, /, *, lib: object = None
) -> Any:
    """Accepted: there is no `__torch_dispatch__` that would ask."""
    return (lambda function: function) if func is None else func


impl_abstract = register_fake  # its older name


def get_ctx() -> NoReturn:
    """Refused outside of functions that `register_fake` got, and those are not called with sizes to be found out."""
    raise RuntimeError(
        "torch.library.get_ctx() can only be called inside a fake impl that is traced: nothing is traced here"
    )


def fallthrough_kernel(*args: object, **kwargs: object) -> NoReturn:
    """Marks a dispatch key that has no function of its own; never called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def triton_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Any:
    """`custom_op`, of a function that compilers may look into, and nothing here does.  The kernels themselves run on GPUs: see `wrap_triton`."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: object, /) -> NoReturn:
    """Refused: Triton's kernels run on GPUs."""
    raise NotImplementedError("torch.library.wrap_triton: Triton compiles for GPUs, and this is a library for CPUs")
