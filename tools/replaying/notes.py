"""What is written down of tensors, graphs and errors: plain values that JSON has, equal wherever behaviour is equal."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

import rushlight as torch

LONGEST_GRAPH = 60
ADDRESS = re.compile(r"0x[0-9a-f]+")
MODULE = re.compile(r"<rushlight(\.\w+)+\.(?=\w)")  # in which file a class lies is no behaviour
PLACE = re.compile(r'File "[^"]*", line \d+')


def error(raised: BaseException) -> list[str]:
    """The class and message of an exception, without what differs between two runs."""
    return [type(raised).__name__, PLACE.sub("File", ADDRESS.sub("0x", str(raised)))]


def digest(array: Any) -> str:
    """A short hash of the values, the same for all arrays of NaN."""
    array = np.asarray(array)
    if array.dtype.kind in "fc":
        array = np.where(array == array, array, np.nan)
    return hashlib.sha1(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def values(t: Any) -> Any:
    """The values as an array of a dtype that NumPy has."""
    t = t.detach().resolve_conj().resolve_neg()
    return (t.float() if t.dtype is torch.bfloat16 else t).numpy()


def tensor(t: Any) -> Any:
    """dtype, shape, strides, values, version, and what it is: of anything else its representation."""
    if not isinstance(t, torch.Tensor):
        return MODULE.sub("<", ADDRESS.sub("0x", repr(t)))
    said = [str(t.dtype), list(t.shape), list(t.stride())]
    try:
        said += [digest(values(t)) if t.numel() and not t.is_inference() else t.numel(), t._version]
    except Exception as raised:  # tensors that have no array or no version
        said += error(raised)
    said += [word for word in ("requires_grad", "is_leaf") if getattr(t, word)]
    said += [word for word in ("is_conj", "is_neg", "is_inference", "_is_view") if getattr(t, word)()]
    return said


def graph(roots: Any) -> list[Any]:
    """The nodes below some tensors: name, next functions by their number in this list, and what each saved."""
    nodes: list[Any] = []
    numbers: dict[int, int] = {}

    def number(node: Any) -> int:
        if id(node) not in numbers:
            numbers[id(node)] = len(nodes)
            nodes.append(node)
        return numbers[id(node)]

    found: list[Any] = [[number(t.grad_fn), t.output_nr] if t.grad_fn is not None else None for t in roots]
    for node in nodes:  # grows while it is walked
        below = [] if len(nodes) > LONGEST_GRAPH else [n and [number(n), k] for n, k in node.next_functions]
        found.append([node.name(), below, saved(node)])
    return found


def saved(node: Any) -> dict[str, Any]:
    """What a node shows of what it saved."""
    found: dict[str, Any] = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                kept = getattr(node, name)
                found[name] = [tensor(t) for t in kept] if isinstance(kept, (tuple, list)) else tensor(kept)
            except Exception as raised:
                found[name] = error(raised)
    return found
