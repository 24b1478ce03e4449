"""Whether arguments are of the kinds that a function's annotations name: asked once it has failed, never before.

A tensor in the place of a number, or a word in that of sizes, fails somewhere inside, with whatever error comes first.
Then the arguments are held against the signature, and the one that is at fault is named.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.foreign import kind_of
from rushlight.tensor import Tensor


def is_int(x: object) -> bool:
    """Whether `x` stands for an integer: a number of Python or NumPy, or one of a tensor without dimensions."""
    if isinstance(x, Tensor):
        return x.dim() == 0 and x.dtype.category < 2
    return hasattr(x, "__index__") and not isinstance(x, np.ndarray)


def is_number(x: object) -> bool:
    """Whether `x` stands for a number."""
    if isinstance(x, (Tensor, np.ndarray)):
        return x.ndim == 0
    return isinstance(x, (int, float, complex, np.generic)) or hasattr(x, "__float__") or hasattr(x, "__index__")


def are_ints(x: object) -> bool:
    """Whether `x` may be a sequence of integers."""
    return isinstance(x, (list, tuple)) and not any(isinstance(n, (str, float)) for n in x)


def is_operand(x: object) -> bool:
    """Whether `x` is a tensor, or an array, which operators take as they are."""
    return isinstance(x, (Tensor, np.ndarray))


# What an annotation stands for: a question, and what errors call it.
KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "int": (is_int, "int"),
    "float": (is_number, "float"),
    "complex": (is_number, "Number"),
    "bool": (lambda x: isinstance(x, (bool, np.bool_)), "bool"),
    "str": (lambda x: isinstance(x, str), "str"),
    "None": (lambda x: x is None, ""),
    "Sequence[int]": (are_ints, "tuple of ints"),
    "tuple[int, ...]": (are_ints, "tuple of ints"),
    "list[int]": (are_ints, "tuple of ints"),
    "Tensor": (is_operand, "Tensor"),
    "Array": (is_operand, "Tensor"),
}
Kind = tuple[list[Callable[[object], bool]], str]


@functools.cache
def kind(annotation: str) -> Kind | None:
    """The questions of which one has to be answered with yes, and the word for all; None where anything may come."""
    parts = [part.strip() for part in annotation.split("|")]
    if not all(part in KINDS for part in parts):
        return None
    words = [KINDS[part][1] for part in parts if part != "None"]
    if not words:
        return None
    word = "tuple of ints" if "tuple of ints" in words else "Number" if {"int", "float"} <= set(words) else words[0]
    return [KINDS[part][0] for part in parts], word


def misfit(annotation: object, x: object) -> str | None:
    """What an argument should be, if it is of no kind that its annotation names."""
    wanted = kind(str(annotation))
    return None if wanted is None or any(fits(x) for fits in wanted[0]) else wanted[1]


def check(
    name: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    method: bool = False,
    truth: bool = False,
) -> None:
    """Raise TypeError for the first argument of `fn` that is of no kind that its annotation names, if there is one.

    method: the first argument is the tensor whose method it is, which errors do not count.  truth: anything may stand
    for a bool, as where PyTorch has the function in Python.
    """
    signature = inspect.signature(fn)
    named = {each: x for each, x in kwargs.items() if each != "out" or each in signature.parameters}
    try:
        given = signature.bind(*args, **named).arguments
    except TypeError:
        return
    for position, (each, parameter) in enumerate(signature.parameters.items(), 0 if method else 1):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        x = given.get(each, parameter.default)
        wanted = None if x is parameter.default else misfit(parameter.annotation, x)
        if wanted is not None and not (truth and wanted == "bool"):
            where = "" if parameter.kind is parameter.KEYWORD_ONLY else f" (position {position})"
            raise TypeError(f"{name}(): argument '{each}'{where} must be {wanted}, not {kind_of(x)}") from None


def statics(op: Any, values: tuple[Any, ...]) -> None:
    """Raise TypeError for what is no tensor among the arguments of a declared operator, and of none of its kinds."""
    notes = op.call.__wrapped__.__annotations__
    for i, (each, x) in enumerate(zip(op.static_names, values, strict=False), len(op.tensors) + 1):
        wanted = None if x is op.defaults.get(each) else misfit(notes.get(each), x)
        if wanted is not None:
            raise TypeError(
                f"{op.shown}(): argument '{each}' (position {i}) must be {wanted}, not {kind_of(x)}"
            ) from None
