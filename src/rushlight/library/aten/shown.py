"""How calls of operators look to `__torch_dispatch__`: overloads of `torch.ops.aten` and PyTorch's arguments of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rushlight.basics.dtypes import of
from rushlight.dispatch.declare import OPS, Op
from rushlight.ops.python.aten import names
from rushlight.ops.python.handing import Shown
from rushlight.tensor import Tensor, wrap

Rule: TypeAlias = "Callable[[Op, tuple[Any, ...], tuple[Any, ...]], Shown | None]"

# overload(arguments, * those by keyword): names of inputs and statics, with PyTorch's default, which is not shown at the end;
# ''=value is one that is always the same.


class Declared:
    """What a line says of an operator."""

    def __init__(self, line: str):
        self.overload, _, words = line.removesuffix(")").partition("(")
        self.places: list[tuple[str, bool, Any]] = []  # name, whether it may be left out, and where it is what
        self.words: list[tuple[str, bool, Any]] = []
        found = self.places
        for word in words.split(", "):
            name, has, default = word.partition("=")
            if name == "*":
                found = self.words
            else:
                found.append((name, bool(has), ast.literal_eval(default) if has else None))

    def __call__(self, given: dict[str, Any]) -> Shown:
        """The overload and its arguments."""
        ndim = next((x.dim() for x in given.values() if isinstance(x, Tensor)), 0)
        values = [
            (d if name == "''" else known(name, given[name]), has and name != "''", d) for name, has, d in self.places
        ]
        while (
            values
            and values[-1][1]
            and (alike(values[-1][0], values[-1][2]) or last(self.places[len(values) - 1], *values[-1], ndim))
        ):
            values.pop()
        words = {name: known(name, given.get(name, d)) for name, has, d in self.words}
        kwargs = {
            PUBLIC.get(name, name): words[name]
            for name, has, d in self.words
            if name not in given or not (has and alike(words[name], d))
        }
        return self.overload, tuple(value for value, _, _ in values), kwargs


def last(place: tuple[str, bool, Any], value: object, has: bool, default: object, ndim: int) -> bool:
    """Whether a value is the last dimension, which is the default."""
    return place[0] == "dim" and default == -1 and value == ndim - 1


PUBLIC = {"format": "memory_format"}  # what PyTorch calls an argument


def alike(value: object, default: object) -> bool:
    """Whether a value is the default."""
    return value is default or (
        not isinstance(value, Tensor) and value.__class__ is not bool and bool(value == default)
    )


REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def known(name: str, value: Any) -> Any:
    """A value as PyTorch has it: sequences as lists, reductions as numbers."""
    return REDUCTIONS.get(value, value) if name == "reduction" else listed(value)


def listed(value: object) -> Any:
    """Sequences as lists."""
    return [listed(item) for item in value] if isinstance(value, tuple) else value


def by_line(op: Op, line: str) -> Rule:
    """The rule of an operator: from its inputs and statics."""
    declared = Declared(line)

    def shown(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
        return declared(by_name(op, inputs, statics))

    return shown


def by_name(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> dict[str, Any]:
    """The inputs and statics of a call by their names."""
    return dict(zip((*op.tensors, *op.static_names), (*inputs, *statics), strict=True))


def rules(named: Mapping[str, Any]) -> dict[str, Rule]:
    """By the names of operators, what their declarations say of their calls.  named: the rules that they may name."""
    return {name: rule for name, op in OPS.items() if (rule := rule_of(op, named)) is not None}


def rule_of(op: Op, named: Mapping[str, Any]) -> Rule | None:
    """What the declaration of an operator says of its calls, if it does."""
    if op.aten_call:
        return named[op.aten_call]
    if not op.aten:
        return None
    line = op.aten[0]
    if {each.partition(".")[2] for each in op.aten} == {"Tensor", "Scalar"}:
        return of_two
    return by_line(op, line) if "(" in line else spread if line.endswith(".correction") else None


def word(op: Op) -> str:
    """The name of an operator's overload, without that of the overload."""
    return names(op)[0] if op.aten else op.name


# Those that a line does not say ----------------------------------------------------------------------------------------


def of_two(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Of a tensor, or of a number, beside another tensor."""
    return f"{word(op)}.{'Tensor' if isinstance(inputs[-1], Tensor) else 'Scalar'}", inputs, {}


def power(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A power: of which either may be a number."""
    if not isinstance(inputs[0], Tensor):
        return "pow.Scalar", inputs, {}
    return f"pow.{'Tensor_Tensor' if isinstance(inputs[1], Tensor) else 'Tensor_Scalar'}", inputs, {}


def reduced(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A sum or mean of all or along dimensions."""
    dim, keepdim = statics
    if dim is None and not keepdim:
        return word(op), inputs, {}
    dims = dim if dim is None else listed(dim if isinstance(dim, (tuple, list)) else (dim,))
    return op.aten[0], (*inputs, dims, *[True] * keepdim), {}


def truth(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """all or any."""
    which, dim, keepdim = statics
    name = "all" if which == "logical_and" else "any"
    if dim is None:
        return name, inputs, {}
    if len(dim) == 1:
        return f"{name}.dim", (*inputs, dim[0], *[True] * keepdim), {}
    return f"{name}.dims", (*inputs, listed(dim), *[True] * keepdim), {}


def place(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """argmax or argmin."""
    which, dim, keepdim = statics
    return which, (*inputs, *([dim] if dim is not None or keepdim else []), *[True] * keepdim), {}


def spread(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A variance or deviation."""
    dim, correction, keepdim = statics
    kwargs: dict[str, Any] = {} if dim is None and correction == 1 else {"correction": whole(correction)}
    if keepdim:
        kwargs["keepdim"] = True
    return op.aten[0], (*inputs, *([] if dim is None else [listed(dim)])), kwargs


def whole(number: Any) -> Any:
    """A number as an int where it is one: as it is mostly given."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def running(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown | None:
    """A running sum or product; one from behind is rushlight's own."""
    return None if statics[1] else (op.name, (*inputs, statics[0]), {})


def sort(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """sort."""
    dim, descending, stable = statics
    last = dim in (-1, inputs[0].dim() - 1)
    if stable:
        return "sort.stable", inputs, {"stable": True, "dim": dim, "descending": descending}
    return "sort", (*inputs, *([] if last and not descending else [dim]), *[True] * descending), {}


def argsorted(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """argsort."""
    dim, descending, stable = statics
    if stable:
        return "argsort.stable", inputs, {"stable": True, "dim": dim, "descending": descending}
    return "argsort", (*inputs, dim, *[True] * descending), {}


def median(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """median along a dimension."""
    dim, keepdim, skip_nan = statics
    return f"{'nanmedian' if skip_nan else 'median'}.dim", (*inputs, dim, *[True] * keepdim), {}


def median_all(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """median of all elements."""
    return "nanmedian" if statics[0] else "median", inputs, {}


def viewed(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """view."""
    return "view", (*inputs, listed(statics[0])), {}


def expanded(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """expand."""
    return "expand", (*inputs, listed(statics[0])), {}


def permuted(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """permute."""
    return "permute", (*inputs, listed(statics[0])), {}


def with_one(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """unsqueeze, whose operator knows the shape: of several places that give it, the last."""
    before, after = tuple(inputs[0].shape), statics[0]
    dim = next(i for i in reversed(range(len(after))) if after[i] == 1 and (*after[:i], *after[i + 1 :]) == before)
    return "unsqueeze", (*inputs, dim), {}


def without_ones(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """squeeze of all dimensions of size 1, of one, or of several."""
    before, after = tuple(inputs[0].shape), tuple(statics[0])
    if before == after or tuple(n for n in before if n != 1) == after:
        gone = sum(n == 1 for n in before)
        if gone != 1:
            return "squeeze", inputs, {}
    dims = removed(before, after)
    return ("squeeze.dim", (*inputs, dims[0]), {}) if len(dims) == 1 else ("squeeze.dims", (*inputs, dims), {})


def removed(before: tuple[int, ...], after: tuple[int, ...]) -> list[int]:
    """The dimensions of size 1 that are there before and not after."""
    dims, k = [], 0
    for i, n in enumerate(before):
        if k < len(after) and after[k] == n and (n != 1 or len(before) - i == len(after) - k):
            k += 1
        else:
            dims.append(i)
    return dims


LAST = (1 << 63) - 1


def parts(index: tuple[Any, ...], ndim: int) -> list[tuple[int, Any]]:
    """The parts of an index that say something, each with its dimension in what is left before it is taken."""
    taken = sum(part is not None and part is not Ellipsis for part in index)
    found, dim = [], 0
    for part in index:
        if part is Ellipsis:
            dim += ndim - taken
        elif isinstance(part, slice) and part in (slice(None), slice(0, None, 1), slice(None, None, 1)):
            dim += 1
        else:
            found.append((dim, part))
            dim += not isinstance(part, int)
    return found


def sliced(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A part along one dimension: see `composed.parted` for those along several."""
    found = parts(statics[0], inputs[0].dim())
    if not found:
        return "alias", inputs, {}
    dim, part = found[0]
    if part is None:
        return "unsqueeze", (*inputs, dim), {}
    if isinstance(part, int):
        return "select.int", (*inputs, dim, part), {}
    step = 1 if part.step is None else part.step
    bounds = (0 if part.start is None else part.start, LAST if part.stop is None else part.stop)
    return "slice.Tensor", (*inputs, dim, *bounds, *([] if step == 1 else [step])), {}


def pieces(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """split into equal parts, or by sizes."""
    sizes, dim = statics
    at = [dim] if dim else []
    if len(sizes) and all(n == sizes[0] for n in sizes[:-1]) and sizes[-1] <= sizes[0]:
        return "split.Tensor", (*inputs, sizes[0], *at), {}
    return "split_with_sizes", (*inputs, listed(sizes), *at), {}


def slots(places: tuple[Any, ...], indices: tuple[Any, ...]) -> list[Any]:
    """Indices, None where a whole dimension is taken."""
    return [None if place is None else indices[place] for place in places]


def indexed(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """The elements at indices."""
    return "index.Tensor", (inputs[0], slots(statics[0], inputs[1])), {}


def put(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Values written at indices."""
    where, accumulate = statics
    return "index_put", (inputs[0], slots(where, inputs[2]), inputs[1], *[True] * bool(accumulate)), {}


def index_fill(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """One value written at indices."""
    dim, number = statics
    value = number if inputs[2] is None else inputs[2]
    kind = "Scalar" if inputs[2] is None else "Tensor"
    return f"index_fill.int_{kind}", (inputs[0], dim, inputs[1], value), {}


def copied(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A copy in another dtype."""
    return "_to_copy", inputs, {"dtype": of(statics[0])}


def filled(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """One number everywhere."""
    if statics[0].__class__ is int and not statics[0]:
        return "zero", inputs, {}
    return "fill.Scalar", (*inputs, statics[0]), {}


def multiplied(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A product of matrices, or of batches of them."""
    return "mm" if inputs[0].dim() == 2 else "bmm", inputs, {}


def kept(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """What is where a mask holds, else 0."""
    grad, mask = inputs
    return "where.self", (mask, grad, wrap(np.zeros((), grad._held.dtype))), {}


def nothing(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Zeros of the same shape."""
    return "zeros_like", inputs, {}


def drawn(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Random numbers: which, the function that draws them says."""
    name = statics[0].__qualname__.partition(".")[0].removesuffix("_")
    return {"bernoulli": "bernoulli.float"}.get(name, name), inputs, {}
