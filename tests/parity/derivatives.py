"""Comparing what a case gives in PyTorch and here: values, shapes, dtypes, places in the graph, or errors."""

import warnings
from typing import Any

import numpy as np

import rushlight


def seen(x: Any, lib: Any) -> Any:
    """A result as plain data."""
    if isinstance(x, lib.Tensor):
        return "tensor", tuple(x.shape), str(x.dtype), bool(x.requires_grad), x.detach().numpy()
    if isinstance(x, (tuple, list)):
        return type(x).__name__, [seen(v, lib) for v in x]
    if isinstance(x, dict):
        return {k: seen(v, lib) for k, v in x.items()}
    return x


def outcome(case: Any, lib: Any) -> Any:
    """What a case gives: plain data, or the class and words of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return seen(case(lib), lib), None
        except Exception as error:
            return type(error).__name__, str(error)


def same(a: Any, b: Any, graph: bool) -> bool:
    """Whether two results in plain data are the same; `graph`: whether both must require grad, or neither."""
    if isinstance(a, tuple) and a and a[0] == "tensor":
        alike = a[1:3] == b[1:3] and (not graph or a[3] == b[3])
        return bool(alike and np.allclose(a[4], b[4], rtol=1e-4, atol=1e-5, equal_nan=True))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y, graph) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], graph) for k in a)
    return bool(a == b)


def check(case: Any, torch: Any, words: str | None = None, graph: bool = True) -> None:
    """Run a case in both libraries.  words: what both errors have in common, where the case fails."""
    theirs, ours = outcome(case, torch), outcome(case, rushlight)
    if theirs[1] is not None:
        assert ours[0] == theirs[0], (theirs, ours)
        first = theirs[1].split(".")[0] if words is None else words
        assert first in ours[1], (theirs, ours)
        return
    assert ours[1] is None, ours
    assert same(theirs[0], ours[0], graph), (theirs, ours)
