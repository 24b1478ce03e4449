"""How calls of operators look to `__torch_dispatch__`: overloads of `torch.ops.aten` and PyTorch's arguments of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.dtypes import of
from rushlight.dispatch.declare import OPS
from rushlight.ops.python.handing import Shown
from rushlight.tensor import Tensor, wrap

# operator: overload(arguments, * those by keyword): names of inputs and statics, with PyTorch's default, which is not
# shown at the end; ''=value'' is one that is always the same.
DECLARED = """
add_scaled: add.Tensor(input, other, *, alpha=1)
addcmul: addcmul(input, tensor1, tensor2, *, value=1)
addcdiv: addcdiv(input, tensor1, tensor2, *, value=1)
addmm: addmm(input, mat1, mat2, *, beta=1, alpha=1)
round: round(input, *, decimals=0)
clamp: clamp(input, low=None, high=None)
nan_to_num: nan_to_num(input, nan=None, posinf=None, neginf=None)
div_floor: div.Tensor_mode(input, other, *, rounding_mode='floor')
div_trunc: div.Tensor_mode(input, other, *, rounding_mode='trunc')
floor_divide: floor_divide(input, other)
nansum: nansum(input, dim=None, keepdim=False)
prod: prod.dim_int(input, dim, keepdim=False)
max: max.dim(input, dim, keepdim=False)
min: min.dim(input, dim, keepdim=False)
amax: amax(input, dim=None, keepdim=False)
amin: amin(input, dim=None, keepdim=False)
aminmax: aminmax(input, *, dim=None, keepdim=False)
logsumexp: logsumexp(input, dim, keepdim=False)
linalg_vector_norm: linalg_vector_norm(input, p=2, dim=None, keepdim=False)
count_op: count_nonzero(input, dim=None)
cummax: cummax(input, dim)
cummin: cummin(input, dim)
topk: topk(input, k, dim=-1, largest=True)
kthvalue: kthvalue(input, k, dim=-1, keepdim=False)
mode: mode(input, dim=-1, keepdim=False)
median_all: median(input)
unbind: unbind.int(input, dim=0)
cat: cat(tensors, dim=0)
stack: stack(tensors, dim=0)
diagonal: diagonal(input, offset=0, dim1=0, dim2=1)
tril: tril(input, diagonal=0)
triu: triu(input, diagonal=0)
gather: gather(input, dim, index)
scatter: scatter.src(input, dim, index, src)
scatter_value: scatter.value(input, dim, index, value)
scatter_add: scatter_add(input, dim, index, src)
scatter_reduce: scatter_reduce.two(input, dim, index, src, reduce, *, include_self=True)
index_select: index_select(input, dim, index)
index_add: index_add(input, dim, index, source, *, alpha=1)
index_copy: index_copy(input, dim, index, source)
masked_scatter: masked_scatter(input, mask, source)
as_strided: as_strided(input, size, stride, offset=0)
clone: clone(input, *, format=None)
copy_into: copy(input, src)
repeat: repeat(input, repeats)
flip: flip(input, dims)
roll: roll(input, shifts, dims=[])
gelu: gelu(input, *, approximate='none')
softplus: softplus(input, beta=1, threshold=20)
elu: elu(input, alpha=1, scale=1, input_scale=1)
leaky_relu: leaky_relu(input, negative_slope=0.01)
hardtanh: hardtanh(input, min_val=-1, max_val=1)
softshrink: softshrink(input, lambd=0.5)
hardshrink: hardshrink(input, lambd=0.5)
glu: glu(input, dim=-1)
logit: logit(input, eps=None)
log_sigmoid: log_sigmoid_forward(input)
softmax: _softmax(input, dim, ''=False)
log_softmax: _log_softmax(input, dim, ''=False)
embedding: embedding(weight, indices, padding_idx=-1, by_freq=False, sparse=False)
real_part: real(input)
imag_part: imag(input)
alias: alias(input)
qr_op: linalg_qr(A, mode='reduced')
cholesky_op: linalg_cholesky_ex(A, *, upper=False)
eigh_op: _linalg_eigh(A, UPLO='L')
polygamma: polygamma(n, input)
mse_loss: mse_loss(input, target, reduction=1)
smooth_l1_loss: smooth_l1_loss(input, target, reduction=1, beta=1.0)
huber_loss: huber_loss(input, target, reduction=1, delta=1.0)
soft_margin_loss: soft_margin_loss(input, target, reduction=1)
binary_cross_entropy: binary_cross_entropy(input, target, weight=None, reduction=1)
binary_cross_entropy_with_logits: binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1)
threshold: threshold(input, threshold, value)
""".strip()

# Operators of two numbers or tensors whose overload of a number beside a tensor is one of its own.
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor")
LINE = re.compile(r"(\w+): ([\w.]+)\((.*)\)$")


class Declared:
    """What a line of the table says of an operator."""

    def __init__(self, overload: str, words: str):
        self.overload = overload
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


def listed(value: Any) -> Any:
    """Sequences as lists."""
    return [listed(item) for item in value] if isinstance(value, tuple) else value


def by_line(name: str, rule: Declared) -> Callable[..., Shown]:
    """The rule of an operator: from its inputs and statics."""
    op = OPS[name]

    def shown(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
        given = dict(zip(op.tensors, inputs, strict=True)) | dict(zip(op.static_names, statics, strict=True))
        return rule(given)

    return shown


def declared() -> dict[str, Callable[..., Shown]]:
    """The rules of the table."""
    found = {}
    for line in DECLARED.splitlines():
        name, overload, words = LINE.match(line).groups()  # type: ignore[union-attr]
        found[name] = by_line(name, Declared(overload, words))
    return found


# Those that a line does not say ----------------------------------------------------------------------------------------


def compared(name: str) -> Callable[..., Shown]:
    """A comparison of a tensor with another or with a number."""

    def shown(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
        return f"{name}.{'Tensor' if isinstance(inputs[1], Tensor) else 'Scalar'}", inputs, {}

    return shown


def power(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A power: of which either may be a number."""
    if not isinstance(inputs[0], Tensor):
        return "pow.Scalar", inputs, {}
    return f"pow.{'Tensor_Tensor' if isinstance(inputs[1], Tensor) else 'Tensor_Scalar'}", inputs, {}


def reversed_difference(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """other - input."""
    return f"rsub.{'Tensor' if isinstance(inputs[1], Tensor) else 'Scalar'}", inputs, {}


def interpolated(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """lerp by a number or a tensor."""
    return f"lerp.{'Tensor' if isinstance(inputs[2], Tensor) else 'Scalar'}", inputs, {}


def reduced(name: str, overload: str) -> Callable[..., Shown]:
    """A sum or mean of all or along dimensions."""

    def shown(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
        dim, keepdim = statics
        if dim is None and not keepdim:
            return name, inputs, {}
        dims = dim if dim is None else listed(dim if isinstance(dim, (tuple, list)) else (dim,))
        return f"{name}.{overload}", (*inputs, dims, *[True] * keepdim), {}

    return shown


def truth(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """all or any."""
    which, dim, keepdim = statics
    name = "all" if which == "logical_and" else "any"
    if dim is None:
        return name, inputs, {}
    if len(dim) == 1:
        return f"{name}.dim", (*inputs, dim[0], *[True] * keepdim), {}
    return f"{name}.dims", (*inputs, listed(dim), *[True] * keepdim), {}


def place(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """argmax or argmin."""
    which, dim, keepdim = statics
    return which, (*inputs, *([dim] if dim is not None or keepdim else []), *[True] * keepdim), {}


def spread(name: str) -> Callable[..., Shown]:
    """A variance or deviation."""

    def shown(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
        dim, correction, keepdim = statics
        kwargs: dict[str, Any] = {} if dim is None and correction == 1 else {"correction": correction}
        if keepdim:
            kwargs["keepdim"] = True
        return f"{name}.correction", (*inputs, *([] if dim is None else [listed(dim)])), kwargs

    return shown


def running(name: str) -> Callable[..., Shown | None]:
    """A running sum or product; one from behind is rushlight's own."""

    def shown(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown | None:
        return None if statics[1] else (name, (*inputs, statics[0]), {})

    return shown


def sorted_(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """sort."""
    dim, descending, stable = statics
    last = dim in (-1, inputs[0].dim() - 1)
    if stable:
        return "sort.stable", inputs, {"stable": True, "dim": dim, "descending": descending}
    return "sort", (*inputs, *([] if last and not descending else [dim]), *[True] * descending), {}


def argsorted(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """argsort."""
    dim, descending, stable = statics
    if stable:
        return "argsort.stable", inputs, {"stable": True, "dim": dim, "descending": descending}
    return "argsort", (*inputs, dim, *[True] * descending), {}


def median(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """median along a dimension."""
    dim, keepdim, skip_nan = statics
    return f"{'nanmedian' if skip_nan else 'median'}.dim", (*inputs, dim, *[True] * keepdim), {}


def viewed(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """view."""
    return "view", (*inputs, listed(statics[0])), {}


def expanded(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """expand."""
    return "expand", (*inputs, listed(statics[0])), {}


def permuted(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """permute."""
    return "permute", (*inputs, listed(statics[0])), {}


def with_one(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """unsqueeze, whose operator knows the shape: of several places that give it, the last."""
    before, after = tuple(inputs[0].shape), statics[0]
    dim = next(i for i in reversed(range(len(after))) if after[i] == 1 and (*after[:i], *after[i + 1 :]) == before)
    return "unsqueeze", (*inputs, dim), {}


def without_ones(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
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


def sliced(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
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


def pieces(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """split into equal parts, or by sizes."""
    sizes, dim = statics
    at = [dim] if dim else []
    if len(sizes) and all(n == sizes[0] for n in sizes[:-1]) and sizes[-1] <= sizes[0]:
        return "split.Tensor", (*inputs, sizes[0], *at), {}
    return "split_with_sizes", (*inputs, listed(sizes), *at), {}


def slots(places: tuple[Any, ...], indices: tuple[Any, ...]) -> list[Any]:
    """Indices, None where a whole dimension is taken."""
    return [None if place is None else indices[place] for place in places]


def indexed(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """The elements at indices."""
    return "index.Tensor", (inputs[0], slots(statics[0], inputs[1])), {}


def index_put(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Values written at indices."""
    where, accumulate = statics
    return "index_put", (inputs[0], slots(where, inputs[2]), inputs[1], *[True] * bool(accumulate)), {}


def index_fill(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """One value written at indices."""
    dim, number = statics
    value = number if inputs[2] is None else inputs[2]
    kind = "Scalar" if inputs[2] is None else "Tensor"
    return f"index_fill.int_{kind}", (inputs[0], dim, inputs[1], value), {}


def copied(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A copy in another dtype."""
    return "_to_copy", inputs, {"dtype": of(statics[0])}


def filled(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """One number everywhere."""
    if statics[0].__class__ is int and not statics[0]:
        return "zero", inputs, {}
    return "fill.Scalar", (*inputs, statics[0]), {}


def multiplied(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """A product of matrices, or of batches of them."""
    return "mm" if inputs[0].dim() == 2 else "bmm", inputs, {}


def kept(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """What is where a mask holds, else 0."""
    grad, mask = inputs
    return "where.self", (mask, grad, wrap(np.zeros((), grad._held.dtype))), {}


def nothing(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Zeros of the same shape."""
    return "zeros_like", inputs, {}


def drawn(inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Shown:
    """Random numbers: which, the function that draws them says."""
    name = statics[0].__qualname__.partition(".")[0].removesuffix("_")
    return {"bernoulli": "bernoulli.float"}.get(name, name), inputs, {}


RULES: dict[str, Callable[..., Shown | None]] = {name: compared(name) for name in COMPARED} | {
    "pow": power, "rsub": reversed_difference, "lerp": interpolated, "sum": reduced("sum", "dim_IntList"), "mean": reduced("mean", "dim"),
    "truth_op": truth, "arg_op": place, "cumsum": running("cumsum"), "cumprod": running("cumprod"), "sort": sorted_, "argsort": argsorted,
    "median": median, "view": viewed, "expand": expanded, "permute": permuted, "unsqueeze": with_one, "squeeze": without_ones,
    "slice": sliced, "select": sliced, "split": pieces, "index": indexed, "index_put": index_put, "index_fill": index_fill,
    "_to_copy": copied, "fill_": filled, "random_": drawn, "bmm": multiplied, "keep": kept, "nothing": nothing,
} | {name: spread(name) for name in ("var", "std", "var_mean", "std_mean")}  # fmt: skip
