"""Where public functions and tensor methods are registered, and the decorators that declare operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rushlight.basics.dtype_words import in_c
from rushlight.basics.state import Setting, modes, special
from rushlight.dispatch import call, fast_source
from rushlight.dispatch.declare import OPS, Op
from rushlight.dispatch.dims import check_output
from rushlight.dispatch.outs import check_dtypes
from rushlight.dispatch.plan import Formula
from rushlight.overrides.public import Unnoticed, of_method, retried
from rushlight.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Operator(Protocol):
    """The public function of a declared operator: `op` is its declaration, `grad` declares a gradient."""

    __name__: str
    op: Any

    def grad(
        self,
        *targets: str,
        raw: Callable[..., Any] | None = None,
        shapes: Callable[..., Any] | None = None,
        uses: dict[str, str] | None = None,
        blocks: bool | None = None,
    ) -> Callable[[F], F]:
        """Declare the gradient formula of the inputs named."""

    def tangent(self, fn: F) -> F:
        """Declare the tangent rule."""

    def shape(self, fn: F) -> F:
        """Declare what it makes, from shapes alone."""

    def costs(self, fn: F) -> F:
        """Declare its floating-point operations."""

    def work(self, fn: F) -> F:
        """Declare the bytes that its kernel needs for a moment."""

    def into(self, fn: F) -> F:
        """Declare the forward written into its first input."""

    def check(self, fn: F) -> F:
        """Declare what raises where operands do not go together."""

    def large(self, fn: F) -> F:
        """Declare a forward for large arrays."""

    def __call__(self, *args: object, **kwargs: object) -> Any: ...


NAMESPACES: dict[str, dict[str, Any]] = {}  # "" is torch itself; "nn.functional", "linalg", "special", "fft", ...


def is_public(fn: Callable[..., Any]) -> bool:
    """Whether `fn` was published under its name."""
    return any(space.get(fn.__name__) is fn for space in NAMESPACES.values())


def known_as(fn: Callable[..., Any], name: str, ns: str = "") -> Callable[..., Any]:
    """`fn` known to error messages and pickles by its public name, not by that of the source; ns "Tensor": a method."""
    shown = f"Tensor.{name}" if ns == "Tensor" else name
    if fn.__qualname__ not in (name, shown):
        fn.__module__ = "rushlight" if ns in ("", "Tensor") else f"rushlight.{ns}"
    inner = fn
    while inner.__qualname__ not in (name, shown):
        inner.__name__, inner.__qualname__ = name, shown
        inner = getattr(inner, "__wrapped__", fn)  # which is what complains of arguments
        if is_public(inner):
            break
    return fn


def publish(fn: Callable[..., Any], name: str, ns: str, aliases: tuple[str, ...], method: bool) -> None:
    """Make `fn` a function of namespace `ns` and, if so asked, a method of Tensor, under all its names."""
    if not is_public(fn):
        known_as(fn, name, ns)
    space = NAMESPACES.setdefault(ns, {})
    for each in (name, *aliases):
        space[each] = fn
        if method:
            setattr(Tensor, each, fn)


def publish_inplace(fn: Callable[..., Any], name: str, ns: str, aliases: tuple[str, ...]) -> None:
    """Make `fn` the in-place function `name_`: a method, and a function of torch."""
    space = NAMESPACES.setdefault(ns, {})
    known_as(fn, f"{name}_", ns)
    fn.__doc__ = fn.__doc__ or f"In-place version of `{name}`."
    for each in (name, *aliases):
        space.setdefault(f"{each}_", fn)
        setattr(Tensor, f"{each}_", fn)


def inplace_of(op: Op) -> Callable[..., Any]:
    """The in-place function of an operator."""

    def inplace(*args: object, **kwargs: object) -> Tensor:
        inputs, statics = op.bind(args, kwargs)
        try:
            return call.apply_inplace(op, inputs, statics)
        except Unnoticed as error:
            return retried(of_method(inplace.__name__), error, *args, **kwargs)

    inplace.__doc__ = f"In-place version of `{op.name}`."
    return inplace


def op(*, ns: str | None = None, aliases: tuple[str, ...] = (), method: bool = True, inplace: bool = False,
       public: str | None = None, grads: dict[str, Any] | None = None,
       **settings: Any) -> Callable[[Callable[..., Any]], Operator]:  # fmt: skip
    """Declare an operator from its forward; the decorated name becomes its public function.

    ns: the namespace it is published in, "" for torch itself; by default none, as of what composed functions call;
    method, inplace: publish these there too; public: its name there; grads: formulas by input name; settings: those of
    `Op`. The function has the attribute `op`.
    """

    def declare(fn: Callable[..., Any]) -> Any:
        made = Op(fn, aliases=aliases, **settings)
        for target, formula in (grads or {}).items():
            made.add_formula(Formula((target,), formula, False))
        OPS[made.name] = made
        public_fn = choose(made)
        public_fn.__name__ = public_fn.__qualname__ = name = public or fn.__name__
        public_fn.__doc__, public_fn.__module__ = fn.__doc__, fn.__module__
        public_fn.op, public_fn.grad, public_fn.tangent, public_fn.__wrapped__ = made, made.grad, made.tangent, fn
        public_fn.shape, public_fn.costs, public_fn.work = made.shape, made.costs, made.work
        public_fn.into, public_fn.check, public_fn.large = (
            functools.partial(made.declare, name) for name in ("into", "check", "large")
        )
        made.call = public_fn
        fn.__annotations__ = as_called(made, fn.__annotations__)
        if ns is not None:
            publish(public_fn, name, ns, aliases, method)
            if inplace:
                publish_inplace(inplace_of(made), name, ns, aliases)
        return public_fn

    return declare


def as_called(made: Op, notes: dict[str, str]) -> dict[str, str]:
    """Annotations as callers see them: they give and get tensors, of which a forward sees the arrays."""
    found = {
        name: note.replace("Arrays", "Sequence[Tensor]").replace("Array", "Tensor") for name, note in notes.items()
    }
    if made.elementwise and made.tensors[1:] in (("other",), ("n",)):
        found[made.tensors[1]] = "Tensor | complex"
    return found


def choose(made: Op) -> Any:
    """The fastest public function that fits the signature."""
    simple = made.elementwise and not made.static_names and made.out_count == 1 and not made.aux
    floats = "f" not in made.refuse
    taken = floats or fast_source.of_integers(made)
    if simple and taken and made.names == ("input",):
        return fast_source.unary(made)
    if simple and taken and made.names == ("input", "other"):
        return fast_source.binary(made)
    several = made.out_count != 1
    if made.sequence is None and made.out_count is not None and made.tensors and floats and not (several and made.view):
        return fast_source.fixed(made)
    return call.general(made)


def elementwise(*, promote: str | None = "float", ns: str | None = "", inplace: bool = True, ufunc: str | None = None,
                **settings: Any) -> Callable[[Callable[..., Any]], Operator]:  # fmt: skip
    """Declare an elementwise operator, by default of torch; `promote` says how dtypes meet (see `Op`)."""
    half = None if ufunc is not None else "float32"
    return op(elementwise=True, promote=promote, ns=ns, inplace=inplace, ufunc=ufunc, **{"half": half, **settings})


def function(
    *,
    ns: str = "",
    aliases: tuple[str, ...] = (),
    method: bool = False,
    out: bool | str = False,
    name: str | None = None,
    inplace: bool = False,
    autocast: str | None = None,
    elementwise: bool = False,
    unlike: str = "",
    out_where: Callable[..., bool] | None = None,
) -> Callable[[F], F]:
    """Publish a function composed of operators.

    autocast: what becomes of its tensors under autocast, as of an operator's (see `converting`).  out: give it the
    keyword `out`, with "same" of the result's dtype alone, with "truth" of bools and bytes, with "places" so where it
    has several results, with "computed" of any dtype, in which it is computed; inplace: publish `name_` too, which
    copies the result into the first argument.
        elementwise: refuse an `out` that shares a part of an input's memory.  unlike: what is said of an `out` of another dtype.
    out_where: (arguments, keywords): whether the form that is called has `out`, where some have none.
    """

    def add(fn: Callable[..., Any]) -> Any:
        shown = name or fn.__name__
        made = fn if autocast is None else converting(fn, autocast)
        made = with_out(made, shown, out, elementwise, unlike, out_where) if out else made
        publish(made, shown, ns, aliases, method)
        if inplace:
            publish_inplace(inplace_by_copy(fn), shown, ns, aliases)
        return made

    return add


def converting(fn: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """`fn`, its operands converted while autocast is on: "lower", "float32" as of operators, "off" not at all.

    What is not to be computed in 16 bits runs without autocast: its products would lose the digits that it asks for.
    """

    @functools.wraps(fn)
    def outer(*args: object, **kwargs: object) -> object:
        if not special.count or modes.autocast is None:
            return fn(*args, **kwargs)
        if kind != "off":
            args, kwargs = tuple(modes.autocast(kind, list(args))), modes.autocast(kind, kwargs)
        if kind == "lower":
            return fn(*args, **kwargs)
        with Setting("autocast", None):
            return fn(*args, **kwargs)

    return outer


def with_out(
    fn: Callable[..., Any],
    name: str,
    which: bool | str = True,
    elementwise: bool = False,
    unlike: str = "",
    out_where: Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """`fn` with the keyword `out`.  which, elementwise, unlike, out_where: see `function`."""
    code = fn.__code__
    positional = code.co_varnames[: code.co_argcount]
    at = positional.index("dtype") if "dtype" in positional else None

    @functools.wraps(fn)
    def outer(*args: Any, **kwargs: Any) -> object:
        out = kwargs.pop("out", None) if kwargs else None
        if out is not None:
            if out_where is not None and not out_where(args, kwargs):
                raise call.no_out(name)
            given = args[at] if at is not None and len(args) > at else kwargs.get("dtype")
            check_out_dtype(name, given, out)
            check_truth(name, out, which)
            if elementwise:
                call.check_overlaps(name, out, (*args, *kwargs.values()))
            if which == "computed" and given is None and isinstance(out, Tensor):
                kwargs["dtype"] = out.dtype
        result = fn(*args, **kwargs)
        if out is not None and unlike:
            check_dtypes(name, out, result, unlike)
        return result if out is None else call.write_out(name, out, result, same=is_same(which, result))

    outer.without_out = fn  # type: ignore[attr-defined]
    return outer


def is_same(which: bool | str, result: object) -> bool:
    """Whether `out` is to be of the dtype of a result: see `function`."""
    return which == "same" or (which == "places" and isinstance(result, tuple))


def check_truth(name: str, out: object, which: bool | str) -> None:
    """Raise RuntimeError for truth in what is neither bools nor bytes."""
    if which == "truth" and isinstance(out, Tensor) and out._held.dtype.char not in "?B":
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {in_c(out.dtype)}")


def check_out_dtype(name: str, dtype: object, out: object) -> None:
    """Raise RuntimeError for `dtype=` beside an `out=` of another."""
    if dtype is not None and isinstance(out, Tensor) and out.dtype is not dtype:
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {in_c(dtype)}, but got {in_c(out.dtype)} "
                           "instead")  # fmt: skip


def along(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a reduction is along a dimension: that over all of them has no `out`."""
    return len(args) > 1 or "dim" in kwargs or "axis" in kwargs


def may_be_recorded(x: Tensor) -> bool:
    """Whether an operator on a tensor may be recorded, here or, of samples, at a level around."""
    return x.requires_grad or getattr(x._array, "interpreted", False)


def inplace_by_copy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of a composed function: its result is copied into the first argument."""

    def inplace(input: Tensor, *args: object, **kwargs: object) -> Tensor:
        # The result's node may save its input, which is about to change: it gets a copy then.
        recorded = modes.grad and any(isinstance(x, Tensor) and may_be_recorded(x) for x in (input, *args))
        result = fn(input.clone() if recorded else input, *args, **kwargs)
        check_output(f"{fn.__name__}_", input._array.shape, result._array.shape)
        call.check_cast(fn.__name__, result._array, input._array)
        return input.copy_(result)

    inplace.__doc__ = f"In-place version of `{fn.__name__}`."
    return inplace
