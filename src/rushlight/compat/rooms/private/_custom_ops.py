"""``torch._custom_ops``: an older way to make operators of Python functions, by `torch.library`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import library
from rushlight.library.custom import CustomOpDef, named
from rushlight.library.schema import infer_schema

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

_made: dict[str, CustomOpDef] = {}
_formulas: dict[str, dict[str, Callable[..., Any]]] = {}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def custom_op(qualname: str, func_or_schema: Callable[..., Any] | str | None = None) -> Any:
    """Declare an operator: by a schema, or by a function of that name whose annotations say it and whose body is never run.

    qualname: with its namespace, "my::sin".  A decorator without a second argument.  Raises ValueError where the name differs.
    """
    if isinstance(func_or_schema, str):
        _made[qualname] = CustomOpDef(named(func_or_schema, qualname), _unmade)
        return None

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        name = qualname.rpartition("::")[2]
        if func.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got '{func.__name__}': "
                "give both one name"
            )
        _made[qualname] = CustomOpDef(named(infer_schema(func, mutates_args=()), qualname), _unmade)
        return func

    return declare if func_or_schema is None else declare(func_or_schema)


def _unmade(*args: object, **kwargs: object) -> None:
    """Stands for the function of an operator that has none yet."""


def _with(
    qualname: str, func: Callable[..., Any] | None, keep: Callable[[CustomOpDef, Callable[..., Any]], object]
) -> Any:
    """A decorator that keeps a function for an operator, or what it does with `func`."""
    if qualname not in _made:
        raise ValueError(
            f"Could not find the operator {qualname}: torch._custom_ops.custom_op declares it, before this"
        )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        keep(_made[qualname], function)
        return function

    return decorate if func is None else decorate(func)


def impl(
    qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable[..., Any] | None = None
) -> Any:
    """What computes an operator; a decorator without `func`."""
    return _with(qualname, func, lambda op, function: op.register_kernel(device_types)(function))


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """What says the shapes of the results of an operator; a decorator without `func`."""
    return _with(qualname, func, lambda op, function: op.register_fake(function))


def impl_save_for_backward(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """What says what is kept for backward, of the arguments, as a named tuple, and the results; a decorator without `func`."""
    return _with(qualname, func, lambda op, function: _formula(qualname, op, "save", function))


def impl_backward(
    qualname: str, output_differentiability: list[bool] | None = None, *, func: Callable[..., Any] | None = None
) -> Any:
    """What gives the gradients, in a dictionary by arguments, of the context, what was kept, and the results' gradients."""
    return _with(qualname, func, lambda op, function: _formula(qualname, op, "backward", function))


def _formula(qualname: str, op: CustomOpDef, part: str, function: Callable[..., Any]) -> None:
    """Keep a part of a formula, and register it once both are there."""
    parts = _formulas.setdefault(qualname, {})
    parts[part] = function
    if len(parts) == 2:
        names = [argument.name for argument in op._opoverload._schema.arguments]
        library.register_autograd(qualname, _Formula(names, parts).backward, setup_context=_Formula(names, parts).keep)


class _Formula:
    """How an operator is differentiated."""

    def __init__(self, names: list[str], parts: dict[str, Callable[..., Any]]):
        self.names, self.parts, self.kind = names, parts, namedtuple("args", names)

    def keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what the user's function says."""
        ctx.kept = self.parts["save"](self.kind(*inputs), output)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """The gradients by position."""
        found = self.parts["backward"](ctx, ctx.kept, *grads)
        return tuple(found.get(name) for name in self.names)


def _destroy(qualname: str) -> None:
    """Forget an operator."""
    op = _made.pop(qualname, None)
    _formulas.pop(qualname, None)
    if op is not None:
        library.namespaces.forget([op._opoverload])
