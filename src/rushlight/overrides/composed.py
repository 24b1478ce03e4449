"""Composed functions look at the classes of their operands, since nothing else would notice one that overrides them.

The function with the look is written out at its first call, with the signature of the operator's own: an operand whose
class is known to override nothing costs one look into a set.  The rest goes to `Public.noticed`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from rushlight.basics.foreign import is_theirs, kind_of
from rushlight.overrides import fitting
from rushlight.overrides.protocol import plain, plainly
from rushlight.overrides.public import Public, described, unfit
from rushlight.tensor import Tensor

# Parameters that are no tensors, whatever their annotation says.
STATIC = frozenset(
    "dim dims dim0 dim1 dtype device generator size shape sizes keepdim axis keepdims layout name names equation padding "
    "normalized_shape stride dilation kernel_size output_size mode reduction p eps start_dim end_dim diagonal offset memory_format".split()
)
OPERANDS = frozenset(
    "other tensor tensors mat mat1 mat2 vec vec1 vec2 batch1 batch2 tensor1 tensor2 mask source src value index indices weight "
    "end input2 target values exponent min max condition prepend append A B L x y LU_data LU_pivots tau".split()
)  # names of operands beside the first
TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "iterator is too large")  # as NumPy says it
TENSORS = ("Any", "Tensor", "Array", "object")  # one of them is in the annotation of what may be a tensor


def first(*args: object, **kwargs: object) -> Any:
    """What a composed function is until its first call (its globals are those of `looking`)."""
    public.looks()  # type: ignore[name-defined]  # noqa: F821
    return public.twin(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


class Composed(Public):
    """A public function that looks at the classes of its operands."""

    __slots__ = ("shape",)

    def looks(self) -> None:
        """Write the code of the function, which is done at its first call."""
        twin = self.twin
        found: dict[str, Any] = {}
        shape = self.shape = Signature(self.inner)
        exec(_compiled(shape.source()), twin.__globals__, found)
        twin.__globals__["direct"] = shape.direct
        twin.__defaults__, twin.__kwdefaults__ = shape.defaults, shape.only or None
        twin.__code__ = found["call"].__code__

    def given(self, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the operator, the arguments being those of the signature: what is as by default was hardly given."""
        try:
            return super().noticed(*self.explicit(values, named))
        except Exception as error:
            self.misfit(error, values, named)
            raise

    def noticed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `Public.noticed`, naming an operand that is no tensor."""
        try:
            return super().noticed(args, kwargs)
        except Exception as error:
            self.misfit(error, args, kwargs)
            raise

    def meet(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `Public.meet`, naming an operand that is no tensor."""
        try:
            return super().meet(args, kwargs)
        except Exception as error:
            self.misfit(error, args, kwargs)
            raise

    def misfit(self, error: Exception, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise TypeError in place of an error, where an argument is not of the kind that it should be."""
        if isinstance(error, ValueError) and str(error).startswith(TOO_LARGE):
            raise RuntimeError(
                f"Storage size calculation overflowed: {self.name.removeprefix('torch.')}() would make more elements "
                "than there are addresses"
            ) from None
        if isinstance(error, AttributeError):
            self.no_tensor(error, values, named)
        if not isinstance(error, TypeError) or "object" in str(error) or "instances of" in str(error):
            short = self.name.removeprefix("torch.")
            method = short.startswith("Tensor.")
            fitting.check(short.rpartition(".")[2] if method else short, self.inner, values, named, method, self.python)

    def no_tensor(self, error: AttributeError, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise TypeError in place of an error that says what an operand, which is no tensor, does not have."""
        shape = getattr(self, "shape", None) or Signature(self.inner)  # there is none before the first look
        names = shape.positional or [f"element {i}" for i in range(len(values))]
        for i, (name, x) in enumerate([*zip(names, values, strict=False), *named.items()]):
            if (
                (x is error.obj or is_theirs(type(x)))
                and not isinstance(x, Tensor)
                and (x is not None or i < shape.required)
            ):
                raise unfit(x)(
                    f"{self.name.removeprefix('torch.')}(): argument '{name}' (position {i + 1}) must be Tensor, not "
                    f"{kind_of(x)}"
                ) from None

    def explicit(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments without those that are as by default."""
        shape = self.shape
        while values and len(values) > shape.required and values[-1] is shape.default(len(values) - 1):
            values = values[:-1]
        return values, {name: x for name, x in named.items() if x is not shape.only.get(name)}


class Einsum(Composed):
    """`einsum`, whose overrides get operands one by one, also where it was given a sequence of them."""

    __slots__ = ()

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]) -> Any:
        """What overrides it."""
        if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])
        return super().ask(args, kwargs, found)


@functools.cache
def _compiled(source: str) -> Any:
    return compile(source, "<composed>", "exec")


def looking(fn: Callable[..., Any], name: str, qualified: str, module: str) -> Any:
    """A function object that does what the composed function `fn` does, once it has looked at its operands."""
    scope: dict[str, Any] = {"__name__": __name__, "plain": plain, "plainly": plainly, "inner": fn}
    return described(FunctionType(first.__code__, scope, name), fn, qualified, module)


class Signature:
    """The parameters of a composed function.

    direct: the function that does the work where the keyword `out` is not given, which may be another.  positional,
    keyword: the names of parameters; required: how many have no default.  open: it takes anything.
    """

    def __init__(self, fn: Callable[..., Any]):
        self.direct = getattr(fn, "without_out", fn)
        code, self.out = self.direct.__code__, self.direct is not fn
        count, only = code.co_argcount, code.co_kwonlyargcount
        self.open = bool(code.co_flags & 0x0C)  # *args or **kwargs
        self.positional, self.keyword = code.co_varnames[:count], code.co_varnames[count : count + only]
        self.defaults = None if self.open else self.direct.__defaults__
        self.only: dict[str, Any] = {} if self.open else dict(self.direct.__kwdefaults__ or {})
        if self.out and not self.open:
            self.keyword, self.only["out"] = (*self.keyword, "out"), None
        self.required = count - len(self.direct.__defaults__ or ())

    def default(self, position: int) -> Any:
        """The default of a parameter."""
        return self.defaults[position - self.required]  # type: ignore[index]

    def source(self) -> str:
        """The source of the function that looks.  What the defaults are is for the function to have."""
        if self.open:
            return ANYTHING
        names = [name if i < self.required else f"{name}=None" for i, name in enumerate(self.positional)]
        only = (
            ["*", *(name if name not in self.only else f"{name}=None" for name in self.keyword)] if self.keyword else []
        )
        inner = [name for name in self.keyword if not (self.out and name == "out")]
        known = list(operands(self.direct))
        checks = " and ".join(f"{name}.__class__ in plain" for name in known)
        if known:
            checks = f"({checks} or plainly({', '.join(known)}))"
        return LOOK.format(
            parameters=", ".join([*names, *only]), plain=checks or "True", looked=" and out is None" * self.out,
            arguments=", ".join([*self.positional, *(f"{name}={name}" for name in inner)]),
            values="".join(f"{name}, " for name in self.positional),
            named=", ".join(f"{name!r}: {name}" for name in self.keyword),
        )  # fmt: skip


LOOK = """
def call({parameters}):
    if {plain}{looked}:
        try:
            return direct({arguments})
        except Exception as error:
            public.misfit(error, ({values}), {{{named}}})
            raise
    return public.given(({values}), {{{named}}})
"""
ANYTHING = """
def call(*args, **kwargs):
    if plainly(*args) and (not kwargs or plainly(*kwargs.values())):
        try:
            return inner(*args, **kwargs)
        except Exception as error:
            public.misfit(error, args, kwargs)
            raise
    return public.noticed(args, kwargs)
"""


def operands(fn: Callable[..., Any]) -> Iterator[str]:
    """The names of the parameters that may be tensors."""
    code, notes = fn.__code__, fn.__annotations__
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        if name not in STATIC and any(kind in str(notes.get(name, "Any")) for kind in TENSORS):
            yield name
