"""The keyword `out` of operators that compute no value but move elements, stricter than of arithmetic, or draw them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.basics.dtype_words import in_c
from rushlight.dispatch import call
from rushlight.tensor import Tensor


def check_apart(name: str, out: Tensor, inputs: Iterable[object]) -> None:
    """Raise RuntimeError where `out` shares memory with an input, or overlaps itself."""
    call.check_single_writes(name, out._held)
    for x in inputs:
        if isinstance(x, (tuple, list)):
            check_apart(name, out, x)
        elif isinstance(x, Tensor) and (x is out or np.may_share_memory(x._held, out._held)):
            raise RuntimeError(
                f"{name}: unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                "single memory location. Please clone() the tensor before performing the operation."
            )


def check_dtypes(name: str, out: Any, result: Any, words: str = "") -> None:
    """Raise RuntimeError where an `out` tensor is of another dtype than its result.

    words: what is said of it first, {} standing for the name of one of several results.
    """
    several = isinstance(result, tuple)
    fields = getattr(result, "_fields", ("out",))
    for field, o, r in zip(fields, out if several else (out,), result if several else (result,), strict=False):
        if isinstance(o, Tensor) and o._held.dtype != r._held.dtype:
            raise RuntimeError(
                f"{name}(): {words.format(field)}Expected out tensor to have dtype {in_c(r.dtype)}, but got "
                f"{in_c(o.dtype)} instead"
            )


def converting(name: str) -> Callable[[Any], Any]:
    """Give a function the keyword `out`, whose dtype its result takes: one whose numbers every dtype has."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def outer(*args: object, **kwargs: Any) -> Any:
            out, result = kwargs.pop("out", None), fn(*args, **kwargs)
            if out is None:
                return result
            if isinstance(out, Tensor) and not result.requires_grad:  # of what does, it is refused below
                result = result.to(out.dtype)
            return call.write_out(name, out, result)

        outer.without_out = fn  # type: ignore[attr-defined]
        return outer

    return add


def moving(same_dtype: bool | str = False) -> Callable[[Any], Any]:
    """Give a function the keyword `out`, which may not share memory with its inputs; perhaps only of the same dtype.

    same_dtype: or the words for another one, see `check_dtypes`.
    """

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = fn.__name__

        @functools.wraps(fn)
        def outer(*args: object, **kwargs: Any) -> Any:
            out = kwargs.pop("out", None) if kwargs else None
            if out is None:
                return fn(*args, **kwargs)
            for each in out if isinstance(out, (tuple, list)) else (out,):
                check_apart(name, each, (*args, *kwargs.values()))
            result = fn(*args, **kwargs)
            if same_dtype:
                check_dtypes(name, out, result, same_dtype if isinstance(same_dtype, str) else "")
            return call.write_out(name, out, result)

        outer.without_out = fn  # type: ignore[attr-defined]
        return outer

    return add
