"""Dimension arguments: wrapped, checked, and the errors for those out of range."""

from __future__ import annotations

from typing import Any


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes or dimensions given one by one or as one sequence, as a tuple of ints."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple([n if n.__class__ is int else n.__index__() for n in args])


def wrap_dim(dim: Any, ndim: int) -> Any:
    """`dim` counted from the front.  Of a 0-d tensor, 0 and -1 are accepted.

    Raises IndexError if it is out of range and TypeError if it is no integer.
    """
    n = ndim or 1
    if dim.__class__ is not int:
        if not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = int(dim.__index__())
    if -n <= dim < n:
        return dim + n if dim < 0 else dim
    raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dimensions counted from the front.  Raises RuntimeError if one is named twice."""
    found = tuple([wrap_dim(d, ndim) for d in dims])
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims {tuple(dims)}")
    return found


def by_keyword(name: str, keyword: str, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Sizes given by keyword instead of one by one, as the function `name` got them.  Raises TypeError for others."""
    value = named.pop(keyword, None)
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(named))!r}")
    if given and value is not None:
        raise TypeError(f"{name}() got multiple values for argument {keyword!r}")
    return given if value is None else (value,)


def common_shape(s: tuple[int, ...], t: tuple[int, ...]) -> Any:
    """The shape to which two shapes broadcast; None if there is none."""
    if s == t:
        return s
    if len(s) < len(t):
        s, t = t, s
    lead = len(s) - len(t)
    found = list(s)
    for i, n in enumerate(t):
        m = s[lead + i]
        if m != n and n != 1:
            if m != 1:
                return None
            found[lead + i] = n
    return tuple(found)
