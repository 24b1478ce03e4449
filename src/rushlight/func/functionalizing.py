"""`functionalize`: functions without changes in place, which nothing here could see."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` as a tracer should see it: with operators out of place for those in place, and copies for views.

    Values, what is changed of the arguments included, are those of `func`, which runs as it is: no tracer here looks beneath
    the operators that are called.  remove: "mutations" or "mutations_and_views".  Raises RuntimeError for another.

    >>> import rushlight as torch
    >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize: received invalid argument for remove={remove!r}. Valid options are: 'mutations', 'mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
