"""Dimension arguments: wrapped, checked, and the errors for those out of range."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from rushlight.basics.errors import explained

P = ParamSpec("P")
R = TypeVar("R")


def sizes(args: tuple[Any, ...], name: str, argument: str) -> tuple[int, ...]:
    """Sizes or dimensions given one by one or as one sequence, as a tuple of ints.

    name, argument: what the error says of them. Raises TypeError for what is no int.
    """
    try:
        given = tuple(args[0]) if len(args) == 1 and not hasattr(args[0], "__index__") else args
        if given:
            no_bool(given[0])  # later ones pass for 0 and 1, as in PyTorch
        return tuple([n if n.__class__ is int else n.__index__() for n in given])
    except (AttributeError, TypeError):
        raise TypeError(f"{name}(): argument '{argument}' must be tuple of ints, {no_ints(args)}") from None


def no_bool(n: object) -> Any:
    """`n`, which stands for an int.  Raises TypeError for a bool."""
    if n.__class__ is bool:
        raise TypeError
    return n


def listed(given: object, name: str, argument: str) -> tuple[int, ...]:
    """Ints given as one sequence, as a tuple.  Raises TypeError for an int alone and for what is no int."""
    if hasattr(given, "__index__") and not hasattr(given, "__len__"):
        got = type(given).__name__
        raise TypeError(f"{name}(): argument '{argument}' must be tuple of ints, not {got}: write ({given},)")
    return sizes((given,), name, argument)


def no_ints(args: tuple[Any, ...]) -> str:
    """What was got where ints were expected, and what to do."""
    if len(args) == 1 and not isinstance(args[0], (tuple, list)):
        advice, got = args[0], f"not {type(args[0]).__name__}"
    else:
        given = args[0] if len(args) == 1 else args
        found = ((i, n) for i, n in enumerate(given) if (i == 0 and n.__class__ is bool) or not hasattr(n, "__index__"))
        at, advice = next(found, (0, given[0]))
        got = f"but found element of type {type(advice).__name__} at pos {at}"
    if isinstance(advice, float):
        return f"{got}: {advice!r} is no int, divide sizes with // or convert them with int()"
    return f"{got}: give ints one by one or in one tuple"


def as_int(value: Any, name: str, argument: str, position: int | None = None) -> int:
    """An int, or what Python counts as one.  Raises TypeError for other numbers."""
    if value.__class__ is int:
        return value
    try:
        return int(value.__index__())  # which tensors and arrays have, too, and refuse where they hold no int
    except (AttributeError, TypeError):
        advice = ": divide with // or convert it with int()" if isinstance(value, float) else ""
        at = f" (position {position})" if position else ""
        raise TypeError(
            f"{name}(): argument '{argument}'{at} must be int, not {type(value).__name__}{advice}"
        ) from None


def wrap_dim(dim: object, ndim: int) -> int:
    """`dim` counted from the front.  Of a 0-d tensor, 0 and -1 are accepted.

    Raises IndexError if it is out of range and TypeError if it is no integer.
    """
    n = ndim or 1
    if dim.__class__ is not int:
        if dim.__class__ is bool or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = int(dim.__index__())
    if -n <= dim < n:
        return dim + n if dim < 0 else dim
    raise explained(
        IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"),
        "dimension-out-of-range",
    )


def wrap_dims(dims: Iterable[int], ndim: int) -> tuple[int, ...]:
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
    if isinstance(value, int):
        raise TypeError(
            f"{name}(): argument {keyword!r} must be tuple of ints, not {type(value).__name__}: write ({value},)"
        )
    return given if value is None else (value,)


def two_sizes(s: tuple[int, ...], t: tuple[int, ...]) -> str:
    """Where shapes do not broadcast together, from the end, in PyTorch's words; nothing where they do."""
    for i in range(1, min(len(s), len(t)) + 1):
        if s[-i] != t[-i] and s[-i] != 1 and t[-i] != 1:
            at = max(len(s), len(t)) - i
            return f"The size of tensor a ({s[-i]}) must match the size of tensor b ({t[-i]}) at non-singleton dimension {at}"
    return ""


def check_output(name: str, shape: tuple[int, ...], made: tuple[int, ...]) -> None:
    """Raise RuntimeError unless what is made has the shape of what it is written into."""
    if made != shape:
        raise RuntimeError(f"{name}: output with shape {list(shape)} doesn't match the broadcast shape {list(made)}")


def unexpandable(have: tuple[int, ...], target: tuple[int, ...]) -> str:
    """Why a shape does not broadcast to `target`, in PyTorch's words; nothing where it does."""
    lead = len(target) - len(have)
    if lead < 0:
        return (
            f"the number of sizes provided ({len(target)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(have)})"
        )
    wrong = [i for i, n in enumerate(have) if n not in (1, target[i + lead])]
    if not wrong:
        return ""
    return (
        f"The expanded size of the tensor ({target[wrong[-1] + lead]}) must match the existing size ({have[wrong[-1]]}) at "
        f"non-singleton dimension {wrong[-1] + lead}.  Target sizes: {list(target)}.  Tensor sizes: {list(have)}"
    )


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


def joint_shape(s: tuple[int, ...], t: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which two shapes broadcast.  Raises RuntimeError if there is none."""
    shape: tuple[int, ...] | None = common_shape(s, t)
    if shape is None:
        raise RuntimeError(two_sizes(s, t))
    return shape


def also_named(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions whose keywords have other names, too: theirs=ours."""

    def wrap(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs:
                for theirs, ours in names.items():
                    if theirs in kwargs and ours not in kwargs:
                        kwargs[ours] = kwargs.pop(theirs)
            return fn(*args, **kwargs)

        return renamed

    return wrap


numpy_names = also_named(axis="dim", keepdims="keepdim")  # as NumPy calls them


def dim_or_axis(name: str, dim: int | None, axis: int | None) -> int:
    """`axis`, by which NumPy calls a dimension that was not given as `dim`.  Raises TypeError where neither was given."""
    if dim is not None:
        return dim
    if axis is None:
        raise TypeError(f"{name}() missing 1 required positional argument: 'dim' (an int, which may be named axis)")
    return axis
