"""Tensors as text: repr, format, and the options of both."""

from __future__ import annotations

import math
import textwrap
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.state import modes
from rushlight.dispatch.registry import function
from rushlight.tensor import Tensor

PROFILES: dict[str, dict[str, Any]] = {"default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
            "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
            "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80}}  # fmt: skip
options = SimpleNamespace(**PROFILES["default"], sci_mode=None)


@function()
def set_printoptions(precision: int | None = None, threshold: Any = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None,
                     sci_mode: bool | None = None) -> None:  # fmt: skip
    """Set how tensors print.

    precision: digits after the point; threshold: above so many elements, only edgeitems at each end are shown;
    linewidth: characters in a line; profile: "default", "short" or "full" sets these four; sci_mode: True or False
    forces scientific notation on or off, None chooses by the values.
    """
    if profile is not None:
        options.__dict__.update(PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.__dict__.update({name: value for name, value in given.items() if value is not None})
    options.sci_mode = sci_mode


class Numbers:
    """How the numbers of one tensor are written: chosen from all that are shown."""

    def __init__(self, shown: Array):
        self.floating, self.whole, self.scientific, self.width = shown.dtype.kind == "f", True, False, 1
        if not self.floating:
            self.width = max([len(str(v)) for v in shown.reshape(-1).tolist()], default=1)
            return
        values = shown.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        size = np.abs(values)
        low, high = float(size.min()), float(size.max())
        self.whole = bool((values == np.ceil(values)).all())
        self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max(len(self.number(v)) for v in values.tolist())

    def number(self, value: Any) -> str:
        """A number, not padded."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{options.precision}f}"

    def __call__(self, value: Any) -> str:
        return self.number(value).rjust(self.width)


class Pairs:
    """How complex numbers are written."""

    def __init__(self, shown: Array):
        self.real, self.imag = Numbers(shown.real), Numbers(shown.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: Any) -> str:
        imag = self.imag(value.imag).strip() if self.imag.floating else self.imag.number(value.imag)
        sign = "" if imag[:1] in "+-" else "+"
        return f"{self.real(value.real)}{sign}{imag}j"


def edges(array: Array) -> Array:
    """The elements that a summary shows."""
    keep = options.edgeitems
    for axis, n in enumerate(array.shape):
        if n > 2 * keep:
            places = [*range(keep), *range(n - keep, n)]
            array = np.take(array, places, axis)
    return array


def vector(array: Array, indent: int, write: Numbers, summarize: bool) -> str:
    """A 1-d array in lines."""
    per_line = max(1, (options.linewidth - indent) // (write.width + 2))
    keep = options.edgeitems
    if summarize and array.size > 2 * keep:
        shown = [*map(write, array[:keep].tolist()), " ...", *map(write, array[array.size - keep :].tolist())]
    else:
        shown = [*map(write, array.tolist())]
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def nested(array: Array, indent: int, write: Any, summarize: bool) -> str:
    """An array in nested brackets."""
    if array.ndim == 0:
        return str(write(array.item()))
    if array.ndim == 1:
        return vector(array, indent, write, summarize)
    keep = options.edgeitems
    if summarize and len(array) > 2 * keep:
        parts = [nested(a, indent + 1, write, summarize) for a in array[:keep]] + ["..."]
        parts += [nested(a, indent + 1, write, summarize) for a in array[len(array) - keep :]]
    else:
        parts = [nested(a, indent + 1, write, summarize) for a in array]
    between: str = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def body(array: Any, indent: int) -> str:
    """The elements of an array of at least one element."""
    if array.dtype.kind == "V" or (array.dtype.kind == "f" and array.itemsize < 4):
        array = array.astype(np.float32)
    if dtypes.is_complex_half(array.dtype):
        array = array.astype(np.complex64)
    summarize = array.size > options.threshold
    shown = edges(array) if summarize else array
    write = Pairs(shown) if array.dtype.kind == "c" else Numbers(shown)
    return nested(array, indent, write, summarize)


def suffixes(tensor: Tensor) -> list[str]:
    """What follows the elements: size, dtype, history."""
    found = []
    array = tensor._array
    if array.size == 0:
        if array.ndim != 1:
            found.append(f"size={tuple(array.shape)}")
        plain = tensor.dtype is dtypes.get_default_dtype()
    else:
        plain = goes_without_saying(tensor.dtype)
    if not plain:
        found.append(f"dtype={tensor.dtype}")
    return found + history(tensor)


def goes_without_saying(dtype: dtypes.dtype) -> bool:
    """Whether numbers of a dtype show it by the way they are written."""
    default = dtypes.get_default_dtype()
    return dtype in (default, default.to_complex(), dtypes.int64, dtypes.bool)


def history(tensor: Tensor) -> list[str]:
    """What is said of a tensor's gradients and tangents."""
    try:
        fn, needed = tensor.grad_fn, tensor.requires_grad
        if modes.transform is not None and tracking(tensor):  # which say themselves what tracks it within
            edge = modes.transform.shown(tensor)[1]
            fn, needed = None if edge is None or isinstance(edge, Tensor) else edge.node, edge is not None
    except RuntimeError:  # a view whose history cannot be rewritten: it is said where that is needed
        return ["grad_fn=<Invalid>"]
    found = []
    if fn is not None:
        found.append(f"grad_fn=<{type(fn).__name__}>")
    elif needed:
        found.append("requires_grad=True")
    if modes.levels and tensor._tangents:
        for level in reversed(modes.levels):
            if level in tensor._tangents and not getattr(level, "of_function", False):
                found.append(f"tangent={tensor._tangents[level]}")
                break
    return found


def numbered(level: Any) -> int:
    """Which of the transformations of functions that run a level is, the outermost being 1."""
    if level not in modes.levels:
        return 1
    place = modes.levels.index(level)
    return 1 + place + (0 if modes.transform is None else modes.transform.within(place))


def tracking(tensor: Tensor) -> list[int]:
    """The numbers of the transformations of functions that differentiate a tensor, of samples those within their level."""
    found = [] if modes.transform is None else modes.transform.shown(tensor)[0]
    tangents = [
        level for level in tensor._tangents or () if getattr(level, "of_function", False) and level in modes.levels
    ]
    return sorted({*found, *map(numbered, tangents)})


def dtype_shown(tensor: Tensor) -> list[str]:
    """The dtype, where it is not the default one."""
    return [] if tensor.dtype is dtypes.get_default_dtype() else [f"dtype={tensor.dtype}"]


def text(tensor: Tensor, contents: Any = None, prefix: str = "tensor(") -> str:
    """A tensor as PyTorch prints it."""
    array, indent = tensor._array, len(prefix)
    if contents is None:
        contents = body(array, indent) if array.size else "[]"
    return ended(prefix + contents, suffixes(tensor), indent)


def ended(line: str, last: list[str], indent: int, below: bool = False) -> str:
    """Elements and what follows them, in lines.  below: the first of it in a line of its own."""
    pieces, used = [line], len(line) - line.rfind("\n") + 1
    for suffix in last:
        if below or used + len(suffix) + 2 > options.linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            used, below = indent + len(suffix), False
        else:
            pieces.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(pieces) + ")"


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    shown = untracked(self, tensor_contents)
    for number in tracking(self) if modes.transform is not None or modes.levels else ():
        shown = f"GradTrackingTensor(lvl={number}, value=\n{textwrap.indent(shown, '    ')}\n)"
    return shown


def untracked(self: Tensor, tensor_contents: str | None) -> str:
    """A tensor without what transformations of functions differentiate of it."""
    if getattr(self._array, "interpreted", False):  # inside vmap
        part, inner = self._array, textwrap.indent(repr(self._array.tensor), "    ")
        return f"BatchedTensor(lvl={numbered(part.level)}, bdim={part.dim}, value=\n{inner}\n)"
    kind = self.__class__
    if kind is Tensor:
        return text(self, tensor_contents)
    if self._dispatched and tensor_contents is not None:
        shown = ended(f"{kind.__name__}({tensor_contents}", history(self), 0)
    elif self._dispatched:
        sizes = [f"size={tuple(self._held.shape)}", *dtype_shown(self), *history(self)]
        shown = ended(f"{kind.__name__}(...", sizes, 0)
    else:
        shown = text(self, tensor_contents, f"{kind.__name__}(")
    return f"Parameter({shown})" if "_is_param" in self.__dict__ else shown


def _format(self: Tensor, spec: str) -> str:
    # A parameter is shown as such, as PyTorch does; asked for digits it has them, which PyTorch refuses.
    if self._array.ndim == 0 and (spec or (self.__class__ is Tensor and not self._meta)):
        return str(format(self.item(), spec))
    return object.__format__(self, spec)


for _name, _method in (("__repr__", _repr), ("__format__", _format)):
    setattr(Tensor, _name, _method)
