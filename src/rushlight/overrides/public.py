"""Public functions: what torch, its namespaces and Tensor show of the operators, and how they come to ask overrides.

Each name gets a function object of its own, whose code is that of the operator's: calls cost what they did.  Only when
the first object comes to be whose class overrides something (or a mode is entered), `arm` exchanges the code of all of
them for one that looks at the arguments.  Operators call each other by the functions below, which never ask.

Objects that are no tensors are made without notice.  So that the first of them is noticed, composed functions that can
be given one look at the class of what they are given, at once; declared operators do when they find that it is no tensor.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from rushlight.basics.foreign import is_theirs, kind_of
from rushlight.overrides.names import TAKES_DATA
from rushlight.overrides.protocol import ALL, Unanswered, asked, disguised, here, overrides, overriding, plain
from rushlight.tensor import Tensor

PUBLIC: list[Public] = []
OWNER: dict[int, Public] = {}  # by the identity of its function object, or of the property that it reads
state: dict[str, bool] = {"armed": False}
on_class: list[Callable[[type], None]] = []  # what else is told of a class of which an object comes to be
_lock = threading.Lock()


class Public:
    """A public function.  func: what overrides are called with.  twin: the function object.  inner: the operator's own.

    name: as errors and `resolve_name` have it.  factory: it has no tensors to ask.  python: PyTorch has it in Python.
    binary: a Python operator.
    """

    __slots__ = ("binary", "factory", "func", "inner", "name", "python", "twin")

    def __init__(
        self,
        inner: Callable[..., Any],
        twin: Callable[..., Any],
        name: str,
        *,
        factory: bool = False,
        python: bool = False,
        binary: bool = False,
    ):
        self.inner, self.twin, self.func, self.name = inner, twin, twin, name
        self.factory, self.python, self.binary = factory, python, binary

    def meet(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the operator, or what overrides it."""
        for x in args:
            if x.__class__ not in plain:
                return self.answer(args, kwargs)
        if kwargs:
            for x in kwargs.values():
                if x.__class__ not in plain:
                    return self.answer(args, kwargs)
        return self.inner(*args, **kwargs) if plain else self.answer(args, kwargs)

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `meet`, where an argument may override the function, or a mode may be active."""
        if here.asks:
            found: list[Any] = []
            if here.asks == ALL:
                found = (
                    self.stand_ins(args, kwargs) if self.factory else overriding((*args, *kwargs.values()), self.python)
                )
            if found or here.modes:
                return self.ask(args, kwargs, found)
        own = self.in_place(args) if args else None
        try:
            return self.inner(*args, **kwargs) if own is None else own(self.inner, *args, **kwargs)
        except Unanswered as error:
            if not self.binary:
                raise TypeError(*error.args) from None
            return NotImplemented

    def in_place(self, args: tuple[Any, ...]) -> Any:
        """What runs in place of the operator: for what its first argument is, or for the first one of a class that is asked."""
        table = disguised.get(type(args[0]))
        for x in () if table is not None else args:
            table = getattr(type(x), "_asked", None)
            if table is not None:
                break
        return None if table is None else table.get(self.name)

    def stand_ins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Whom a factory asks: what stands for sizes, numbers or dtypes that are not there yet.  Tensors are values to it."""
        data = self.name.rpartition(".")[2] in TAKES_DATA
        options = (*args[data:], *(x for name, x in kwargs.items() if not data or name != "data"))
        return [x for x in overriding(options) if not isinstance(x, Tensor)]

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]) -> Any:
        """What overrides the function in place of it."""
        if not self.binary:
            return asked(self.func, self.name, args, kwargs, found, self.python)
        try:
            return asked(self.func, self.name, args, kwargs, found, self.python)
        except TypeError:
            return NotImplemented

    def noticed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the operator with an argument of a class that was not seen before, which may override it."""
        if overriding((*args, *kwargs.values())):
            arm()
            return self.twin(*args, **kwargs)
        return self.inner(*args, **kwargs)


class Iteration(Public):
    """`Tensor.__iter__`, which asks as the two methods that it consists of."""

    __slots__ = ()

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]) -> Any:
        """The parts along the first dimension."""
        if args[0].dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(args[0].unbind(0))


class Equality(Public):
    """`Tensor.__eq__`, of which objects that are no tensors are told as `Tensor.eq`."""

    __slots__ = ()

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]) -> Any:
        """What overrides equality."""
        if any(isinstance(x, Tensor) for x in found) or not found:
            return super().ask(args, kwargs, found)
        return OWNER[id(vars(Tensor)["eq"])].ask(args, kwargs, found)


# Function objects ---------------------------------------------------------------------------------------------------


def twin_of(fn: Callable[..., Any], name: str, qualified: str, module: str) -> Any:
    """Another function object that does what `fn` does, at the same cost."""
    twin = FunctionType(fn.__code__, fn.__globals__, name, fn.__defaults__, fn.__closure__)
    twin.__kwdefaults__ = fn.__kwdefaults__ and dict(fn.__kwdefaults__)
    waiting = fn.__globals__.get("twins")
    if waiting is not None and fn.__globals__.get("call") is fn:
        waiting.append(twin)  # its code is written at the first call
    return described(twin, fn, qualified, module)


def described(twin: Any, fn: object, qualified: str, module: str) -> Any:
    """`twin` with what there is to know about `fn`."""
    twin.__dict__.update(fn.__dict__)
    twin.__doc__, twin.__qualname__, twin.__module__, twin.__wrapped__ = fn.__doc__, qualified, module, fn
    return twin


@functools.cache
def armed_code(cells: int) -> Any:
    """The code of functions that ask, in the place of one that refers to this many variables around it."""
    variables = "".join(f"v{i}, " for i in range(cells))
    source = (f"def around():\n  {variables or 'v'} = {'None, ' * cells or 'None'}\n"
              "  def call(*args, _public=None, **kwargs):\n"
              f"    if False: {variables or 'None'}\n"
              "    return _public.meet(args, kwargs)\n"
              "  return call\n")  # fmt: skip
    found: dict[str, Any] = {}
    exec(compile(source, f"{__file__}:armed", "exec"), found)
    return found["around"]().__code__


def made(cls: type) -> None:
    """Note that an object of a class comes to be: `arm` if it overrides functions."""
    for each in on_class:
        each(cls)
    if not state["armed"] and overrides(cls):
        arm()


def exchange(public: Public) -> None:
    """Give a public function the code that asks."""
    twin = public.twin
    waiting = twin.__globals__.get("twins")
    if waiting is not None and twin in waiting:
        waiting.remove(twin)
    # In this order: other threads may call the function in between.
    twin.__kwdefaults__ = {**(twin.__kwdefaults__ or {}), "_public": public}
    twin.__code__ = armed_code(len(twin.__code__.co_freevars))
    twin.__defaults__, twin.__kwdefaults__ = None, {"_public": public}


def arm() -> None:
    """Make all public functions ask from now on.  Once is enough."""
    if state["armed"]:
        return
    with _lock:
        state["armed"] = True
        for public in PUBLIC:
            exchange(public)


def add(public: Public) -> Callable[..., Any]:
    """Enter a public function, and give back its function object."""
    PUBLIC.append(public)
    OWNER[id(public.twin)] = public
    if state["armed"]:
        exchange(public)
    return public.twin


class Unnoticed(TypeError):
    """An operator met an object that is no tensor but overrides it, before anything looked for such objects."""


def unfit(x: object) -> type[TypeError]:
    """The class of the error for an argument that should be a tensor."""
    return Unnoticed if not state["armed"] and overriding((x,)) else TypeError


def public_of(inner: object) -> Public | None:
    """The public function, no method, of an operator that finds out itself what is no tensor."""
    return next(
        (public for public in PUBLIC if public.inner is inner and not public.name.startswith("torch.Tensor.")), None
    )


def of_method(name: str) -> Public | None:
    """The public method `name` of Tensor."""
    return OWNER.get(id(vars(Tensor).get(name)))


def retried(public: Public | None, error: Unnoticed, *args: object, **kwargs: object) -> Any:
    """Call a public function again that raised `error`, now that it looks."""
    if public is None:
        raise error
    arm()
    return public.twin(*args, **kwargs)


def met(*args: object) -> bool:
    """Whether a method of Tensor is to be called again, since an operand that nobody looked for overrides it."""
    parts = (x for arg in args for x in (arg if arg.__class__ is tuple else (arg,)))
    if state["armed"] or not any(overrides(x.__class__) for x in parts):
        return False
    arm()
    return True


def left_to(name: str, tensor: Tensor, other: Tensor | complex) -> Any:
    """What Tensor's operator `name` gives for an operand that it does not know: NotImplemented, unless that overrides it."""
    if is_theirs(other.__class__):
        raise TypeError(f"{name}(): argument 'other' must be Tensor or Number, not {kind_of(other)}")
    if state["armed"] or not overriding((other,)):
        return NotImplemented
    arm()
    return getattr(Tensor, name)(tensor, other)
