"""How functions and modules are called: arguments by their names, with those that are as by default."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.absent import walls
from rushlight.basics.signatures import signature_of
from rushlight.fx.names import room
from rushlight.overrides.public import OWNER
from rushlight.tensor import Tensor

__all__ = ["ArgsKwargsPair", "create_type_hint", "get_signature_for_torch_op", "normalize_function", "normalize_module",
           "type_matches"]  # fmt: skip

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


# Names by which arguments may come too, NumPy's among them, and where results may go.  Stars are of older ways to call.
OTHERWISE = frozenset({"out", "axis", "keepdims", "axes"})


class ArgsKwargsPair(NamedTuple):
    """What is passed by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _native(op: object) -> bool:
    """Whether PyTorch has a function in C++."""
    public = OWNER.get(id(op))
    return public is not None and not public.python


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The ways to call a function of torch: without and with ``out``; None for a function in Python.

    return_schemas: whether None comes beside, for the schemas, which are not here.

    >>> import rushlight as torch
    >>> [list(each.parameters) for each in get_signature_for_torch_op(torch.flatten)]
    [['input', 'start_dim', 'end_dim']]
    """
    found = None
    if _native(op):
        whole = _typed(inspect.signature(op))
        parameters = [p for p in whole.parameters.values() if p.name not in OTHERWISE and p.kind in NAMED]
        found = [whole.replace(parameters=parameters)]
        if "out" in whole.parameters:
            found.append(
                whole.replace(
                    parameters=[*parameters, whole.parameters["out"].replace(default=inspect.Parameter.empty)]
                )
            )
    return (found, None) if return_schemas else found


def _typed(signature: inspect.Signature) -> inspect.Signature:
    """A signature whose annotations of tensors are the class itself."""
    kinds = {"Tensor": Tensor, "Array": Tensor, "'Array'": Tensor}
    parameters = [
        p.replace(annotation=kinds.get(str(p.annotation), p.annotation)) for p in signature.parameters.values()
    ]
    return signature.replace(
        parameters=parameters,
        return_annotation=kinds.get(str(signature.return_annotation), signature.return_annotation),
    )


def create_type_hint(x: object) -> Any:
    """The type of a list or tuple of types: of one type where all are the same, of anything elsewhere; other types as they are.

    >>> create_type_hint([int, int]), create_type_hint((int, float))
    (list[int], tuple[typing.Any, ...])
    """
    if not isinstance(x, list | tuple) or not all(isinstance(kind, type) for kind in x):
        return x
    item: Any = x[0] if x and all(kind is x[0] for kind in x) else Any
    return list[item] if isinstance(x, list) else tuple[item, ...]


def type_matches(signature_type: object, argument_type: object) -> bool:
    """Whether an argument of a type may be passed where a signature has another.

    >>> type_matches(typing.Optional[int], int), type_matches(list[int], int), type_matches(float, int)
    (True, True, False)
    """
    if signature_type == argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union:
        return any(type_matches(part, argument_type) for part in typing.get_args(signature_type))
    if origin is list:
        item = typing.get_args(signature_type)[0]
        parts = typing.get_args(argument_type) or (argument_type,)
        return all(part is ... or type_matches(item, part) for part in parts)
    return (
        isinstance(signature_type, type)
        and isinstance(argument_type, type)
        and issubclass(argument_type, signature_type)
    )


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """What is passed in a call, defaults included; None where that is not known.

    arg_types, kwarg_types: taken; a function has one signature here.  normalize_to_only_use_kwargs: pass all by name.

    >>> import rushlight as torch
    >>> normalize_function(torch.flatten, (1, 2), normalize_to_only_use_kwargs=True).kwargs
    {'input': 1, 'start_dim': 2, 'end_dim': -1}
    """
    if not callable(target) or room(target) in ("_operator", "builtins", "math"):
        return None
    try:
        signature = (get_signature_for_torch_op(target) or [signature_of(target)])[0]
    except ValueError:  # a function in C
        return None
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """What is passed in a call of a submodule; None for modules that are not those of ``torch.nn``.

    Raises RuntimeError where there is none at the path `target`.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"normalize_module: there is no module {target!r} in {type(root).__name__}") from error
    if not room(type(module)).startswith("torch.nn."):
        return None
    return _bound(signature_of(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    """Arguments as a signature names them."""
    if any(p.kind not in NAMED for p in signature.parameters.values()):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    count = 0 if by_name else len(args)
    named = dict(bound.arguments)
    return ArgsKwargsPair(tuple(named.pop(name) for name in list(named)[:count]), named)


__getattr__ = walls.lacking(__name__)
