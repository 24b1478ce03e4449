"""einsum: sums of products named by subscripts, two operands at a time as one matrix product each."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.foreign import kind_of
from rushlight.dispatch import costs, families, shapes
from rushlight.dispatch.compute import HALVES
from rushlight.dispatch.declare import Array
from rushlight.dispatch.operands import raw
from rushlight.dispatch.registry import function, op
from rushlight.kernels.dispatch import summed_in
from rushlight.kernels.products import work_of_halves
from rushlight.ops.elementwise.arith import conj
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.linear.unfit import same_dtype
from rushlight.ops.reduce.sums import fold_of, sum_op
from rushlight.ops.shape.diagonal import diagonal
from rushlight.ops.shape.reshape import broadcast
from rushlight.ops.shape.views import permute
from rushlight.tensor import Tensor

Labels = tuple[Any, ...]  # a name for each dimension of an operand: a letter, or an int for one behind the ellipsis
SHORT = 32  # summands of a product of vectors
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Plan(NamedTuple):
    """How two operands meet in one product.  left, right: the order of their dimensions, batch first; batch, rows: how many of them;
    summed: where the labels lie that are added up, in either; order: of the dimensions of the product, None where they lie so"""

    left: tuple[int, ...]
    right: tuple[int, ...]
    batch: int
    rows: int
    summed: tuple[tuple[int, int], ...]
    order: tuple[int, ...] | None


@lru_cache(512)
def planned(la: Labels, lb: Labels, lo: Labels) -> Plan:
    """The plan for labels of two operands and of what comes of them."""
    batch = [n for n in lo if n in la and n in lb]
    rows, columns = [n for n in lo if n not in lb], [n for n in lo if n not in la]
    summed, have = [n for n in la if n not in lo], batch + rows + columns
    return Plan(
        tuple(la.index(n) for n in batch + rows + summed),
        tuple(lb.index(n) for n in batch + summed + columns),
        len(batch),
        len(rows),
        tuple((la.index(n), lb.index(n)) for n in summed),
        None if have == list(lo) else tuple(have.index(n) for n in lo),
    )


def as_matrices(x: Array, batch: int, rows: int) -> Array:
    """x (batch, rows, columns), each of some dimensions, with rows and columns as one dimension each."""
    if x.ndim == batch + 2 and rows == 1:
        return x
    shape = x.shape
    return x.reshape(*shape[:batch], math.prod(shape[batch : batch + rows]), math.prod(shape[batch + rows :]))


def same_size(a: Array, b: Array, summed: tuple[tuple[int, int], ...]) -> tuple[Any, Any]:
    """Both operands where a summed dimension is 1 in one of them: it stands for all, so the other is summed first."""
    for i, j in summed:
        if a.shape[i] == 1 and b.shape[j] != 1:
            b = summed_over(b, j)
        elif b.shape[j] == 1 and a.shape[i] != 1:
            a = summed_over(a, i)
    return a, b


def summed_over(x: Array, dim: int) -> Array:
    """The sum over one dimension, which stays; of 16-bit numbers in float32."""
    return x.sum(dim, keepdims=True, dtype=summed_in(x.dtype)).astype(x.dtype, copy=False)


def are_short_rows(left: Array, right: Array) -> bool:
    """Whether each sum is of a row of either factor, of so few products that calling BLAS for it takes longer than to make it."""
    alike = left.shape[:-2] == right.shape[:-2] and left.dtype.kind == "f" and left.dtype.itemsize >= 4
    return bool(alike and left.shape[-1] <= SHORT < left.size)


@op(
    autocast="lower",
    factors=(0, 1),
    name="einsum",
    half=None,
    linear=True,
    counted=costs.Counted("bmm", "bmm"),
    batch=families.labelled,
)
def contract(input: Array, other: Array, la: Labels, lb: Labels, lo: Labels) -> Array:
    """Products of two operands summed over the labels that `lo` lacks; each label of one is in `lo` or the other.

    One matrix product, batched over the labels that all three have.
    """
    plan = planned(la, lb, lo)
    batch, rows, summed = plan.batch, plan.rows, len(plan.summed)
    a, b = same_size(input, other, plan.summed)
    a, b = a.transpose(plan.left), b.transpose(plan.right)
    left, right = as_matrices(a, batch, rows), as_matrices(b, batch, summed)
    shape = (*a.shape[batch : batch + rows], *b.shape[batch + summed :])
    if summed and not shape and are_short_rows(left, right):
        out = fold_of(np.add, np.multiply, left[..., 0, :], (batch,), False, right[..., 0])
    else:
        out = backend.matmul(left, right) if summed else backend.column_by_row(left, right)
    if len(shape) != 2 or rows != 1:
        out = np.reshape(out, (*out.shape[:batch], *shape))
    return out if plan.order is None else out.transpose(plan.order)


@contract.costs
def _(input: Tensor, other: Tensor, la: Labels, lb: Labels) -> int:
    sizes = dict(zip(la, input.shape, strict=False))
    if other is not None:
        sizes |= {label: n for label, n in zip(lb, other.shape, strict=False) if n != 1}
    return 2 * math.prod(sizes.values())


@contract.shape
def _(input: Array, other: Array, la: tuple[str, ...], lb: tuple[str, ...], lo: tuple[str, ...]) -> list[shapes.Made]:
    pairs = [*zip(la, input.shape, strict=False), *zip(lb, () if other is None else other.shape, strict=False)]
    sizes = dict(sorted(pairs, key=lambda pair: pair[1] != 1))  # the last one of a label counts
    return [shapes.Made(tuple(sizes[k] for k in lo), input.dtype)]


@contract.work
def _(input: Array, other: Array, la: Labels, lb: Labels, lo: Labels) -> int:
    spread = (x for x in (input, other) if x.ndim and not any(x.strides))  # as a sum's gradient: BLAS takes a copy
    copies = sum(int(x.nbytes) for x in spread)
    if input.dtype not in HALVES:
        return copies
    plan, sizes = (
        planned(la, lb, lo),
        (dict(zip(la, input.shape, strict=True)), dict(zip(lb, other.shape, strict=True))),
    )
    steps = math.prod(input.shape[i] for i, _ in plan.summed)
    rows, columns = (math.prod(n for name, n in of.items() if name in lo and name not in other_labels)
                     for of, other_labels in zip(sizes, (lb, la), strict=True))  # fmt: skip
    return copies + work_of_halves(input.dtype, rows, steps, columns)


def _slope(g: Any, other: Any, shape: tuple[int, ...], labels: Labels, beside: Labels, lo: Labels) -> Any:
    """The gradient of one operand, of `shape` but for dimensions that are 1 in it: the engine adds these up."""
    found = contract(g, conj(other), lo, beside, labels)
    sizes = tuple(found.shape)
    if all(n in (size, 1) for n, size in zip(shape, sizes, strict=True)):
        return found
    return broadcast(found, tuple(size if n == 1 else n for n, size in zip(shape, sizes, strict=True)))


contract.grad("input")(lambda g, other, input_shape, la, lb, lo: _slope(g, other, input_shape, la, lb, lo))
contract.grad("other")(lambda g, input, other_shape, la, lb, lo: _slope(g, input, other_shape, lb, la, lo))


# Reading the equation ------------------------------------------------------------------------------


def subscripts(term: str, equation: str, whose: str, start: int) -> list[Any]:
    """The labels of one term, which begins at `start`, Ellipsis among them.  whose: "operand 0", "output"."""
    found: list[Any] = []
    i = 0
    while i < len(term):
        if term[i] == ".":
            if term[i : i + 3] != "..." or Ellipsis in found:
                raise RuntimeError(
                    f"einsum(): found '.' for {whose} {lone(whose, Ellipsis in found)}, in {term!r} of {equation!r}"
                )
            found.append(Ellipsis)
            i += 3
        elif term[i] in LETTERS:
            found.append(term[i])
            i += 1
        elif term[i] == " ":
            i += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation {equation!r}, "
                               f"{term[i]!r}: subscripts must be in [a-zA-Z]")  # fmt: skip
    return found


def lone(whose: str, again: bool) -> str:
    """What is wrong with a dot."""
    if whose == "output":
        return "but an ellipsis (...) was already found" if again else "that is not part of any ellipsis (...)"
    return "for which an ellipsis was already found" if again else "that is not part of any ellipsis"


def parse(equation: str) -> tuple[list[list[Any]], Any]:
    """The labels of each operand, and of the output or None if it is implied."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    starts = itertools.accumulate((len(part) + 1 for part in parts), initial=0)
    terms = [
        subscripts(part, equation, f"operand {i}", at) for i, (part, at) in enumerate(zip(parts, starts, strict=False))
    ]
    return terms, subscripts(right, equation, "output", len(left) + 2) if arrow else None


def from_lists(args: tuple[Any, ...]) -> tuple[list[Any], list[list[Any]], Any]:
    """Operands and labels of the form einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    pairs = len(args) // 2
    output = args[-1] if len(args) % 2 else None
    terms = [letters(args[2 * i + 1]) for i in range(pairs)]
    return [args[2 * i] for i in range(pairs)], terms, None if output is None else letters(output)


def letters(sublist: list[Any]) -> list[Any]:
    """A list of ints as labels."""
    found: list[Any] = []
    for n in sublist:
        if n is not Ellipsis and not 0 <= n < len(LETTERS):
            raise ValueError(f"einsum(): subscript {n} is not within the valid range [0, {len(LETTERS)})")
        found.append(n if n is Ellipsis else LETTERS[n])
    return found


def spelled(ndims: tuple[int, ...], terms: list[list[Any]]) -> tuple[list[Labels], int]:
    """Labels for every dimension, the dimensions of an ellipsis as negative ints; and how many such there are."""
    if len(ndims) != len(terms):
        which = "more" if len(ndims) > len(terms) else "fewer"
        raise RuntimeError(f"einsum(): {which} operands were provided than specified in the equation: {len(ndims)} against "
                           f"{len(terms)}")  # fmt: skip
    found, most = [], 0
    for i, (ndim, term) in enumerate(zip(ndims, terms, strict=True)):
        named = len([n for n in term if n is not Ellipsis])
        if named > ndim or (Ellipsis not in term and named != ndim):
            unlike = "is more than" if Ellipsis in term else "does not match"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) {unlike} the number of "
                f"dimensions ({ndim}) for operand {i}{'' if Ellipsis in term else ' and no ellipsis was given'}"
            )
        extra = ndim - named
        most = max(most, extra) if Ellipsis in term else most
        found.append(tuple(m for n in term for m in (range(-extra, 0) if n is Ellipsis else (n,))))
    return found, most


def output_labels(terms: list[Labels], output: list[Any], extra: int) -> Labels:
    """The labels of the output: as given, or the ellipsis and then, sorted, the labels that occur once."""
    every = [n for term in terms for n in term]
    if output is None:
        return (*range(-extra, 0), *sorted(n for n in set(every) if isinstance(n, str) and every.count(n) == 1))
    named = [n for n in output if n is not Ellipsis]
    for n in named:
        if named.count(n) > 1:
            raise RuntimeError(f"einsum(): output subscript {n} appears more than once in the output")
        if n not in every:
            raise RuntimeError(f"einsum(): output subscript {n} does not appear in the equation for any input operand")
    return tuple(m for n in output for m in (range(-extra, 0) if n is Ellipsis else (n,)))


@lru_cache(512)
def read(equation: str, ndims: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of operands of so many dimensions, and of the output."""
    terms, output = parse(equation)
    return labelled(ndims, terms, output)


def labelled(ndims: tuple[int, ...], terms: list[list[Any]], output: Any) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of operands of so many dimensions, and of the output, of terms as they are written."""
    found, extra = spelled(ndims, terms)
    return tuple(found), output_labels(found, output, extra)


# Carrying it out -----------------------------------------------------------------------------------


def without_repeats(x: Tensor, labels: Labels, operand: int) -> tuple[Any, Labels]:
    """The diagonal over dimensions of the same label.  operand: which one it is, for errors."""
    while len(set(labels)) != len(labels):
        name = next(n for n in labels if labels.count(n) > 1)
        i = labels.index(name)
        j = labels.index(name, i + 1)
        if raw(x).shape[i] != raw(x).shape[j]:
            raise RuntimeError(f"einsum(): subscript {name} is repeated for operand {operand} but the sizes don't match, "
                               f"{raw(x).shape[j]} != {raw(x).shape[i]}")  # fmt: skip
        x = diagonal(x, 0, i, j)
        labels = (*[n for k, n in enumerate(labels) if k not in (i, j)], name)
    return x, labels


def check_sizes(operands: list[Any], terms: list[Labels]) -> dict[Any, int]:
    """The size of each label.  Raises RuntimeError where operands disagree (1 goes with any)."""
    sizes: dict[Any, int] = {}
    for i, (x, labels) in enumerate(zip(operands, terms, strict=True)):
        for name, n in zip(labels, raw(x).shape, strict=True):
            if sizes.setdefault(name, n) == 1:
                sizes[name] = n
            elif n not in (1, sizes[name]):
                raise RuntimeError(f"einsum(): subscript {name} has size {n} for operand {i} "
                                   f"which does not broadcast with previously seen size {sizes[name]}")  # fmt: skip
    return sizes


def summed_out(x: Tensor, labels: Labels, keep: set[Any]) -> tuple[Any, Labels]:
    """The operand summed over the labels that nobody else needs."""
    gone = tuple(i for i, n in enumerate(labels) if n not in keep)
    return (sum_op(x, gone, False), tuple(n for n in labels if n in keep)) if gone else (x, labels)


class Meeting(NamedTuple):
    """Two operands that meet.  gone: what each is summed over first; kept: the labels of each then; made: of their product"""

    gone: tuple[tuple[int, ...], tuple[int, ...]]
    kept: tuple[Labels, Labels]
    made: Labels


@lru_cache(512)
def meeting(la: Labels, lb: Labels, others: tuple[Labels, ...], lo: Labels) -> Meeting:
    """How operands of labels la and lb meet where those of `others` and the output `lo` need labels after them."""
    keep = set(lo).union(*others)
    gone = tuple(i for i, n in enumerate(la) if n not in keep and n not in lb)
    gone_too = tuple(i for i, n in enumerate(lb) if n not in keep and n not in la)
    made = tuple(n for n in dict.fromkeys((*la, *lb)) if n in keep)
    kept = tuple(n for i, n in enumerate(la) if i not in gone), tuple(n for i, n in enumerate(lb) if i not in gone_too)
    return Meeting((gone, gone_too), kept, lo if not others and set(made) == set(lo) else made)


def met(a: Tensor, la: Labels, b: Tensor, lb: Labels, others: tuple[Labels, ...], lo: Labels) -> tuple[Any, Labels]:
    """The product of two operands, summed over the labels that nobody needs after it; and its labels."""
    (gone, gone_too), (la, lb), made = meeting(la, lb, others, lo)
    a = sum_op(a, gone, False) if gone else a
    b = sum_op(b, gone_too, False) if gone_too else b
    check_bools(a, la, b, lb, made)
    return contract(a, b, la, lb, made), made


def cheapest(terms: list[Labels], lo: Labels, sizes: dict[Any, int]) -> tuple[int, int]:
    """The pair of operands whose contraction needs the fewest multiplications, then the smallest result."""
    if len(terms) == 2:
        return 0, 1

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        i, j = pair
        both = set(terms[i]) | set(terms[j])
        rest = set(lo).union(*[t for k, t in enumerate(terms) if k not in pair])
        return math.prod(sizes[n] for n in both), math.prod(sizes[n] for n in both & rest)

    return min(itertools.combinations(range(len(terms)), 2), key=cost)


def summed_alone(name: str, operands: list[Any], terms: list[Labels]) -> bool:
    """Whether one operand is summed over the label before it meets others: alone has it, or is longer than 1 there."""
    sizes = [raw(x).shape[labels.index(name)] for x, labels in zip(operands, terms, strict=True) if name in labels]
    return len(sizes) == 1 or len(set(sizes)) > 1


def check_bools(a: Tensor, la: Labels, b: Tensor, lb: Labels, made: Labels) -> None:
    """Raise NotImplementedError where products of bools are to be summed: are they to be counted, or is one enough?"""
    if raw(a).dtype != np.bool_ or not (raw(a).size and raw(b).size):
        return
    if any(n not in made and raw(a).shape[la.index(n)] > 1 for n in la if n in lb):
        raise NotImplementedError(
            "einsum(): expected tensors of integers, floating point or complex values where products are summed, got "
            "torch.bool: convert the operands, with .long() to count"
        )


def evaluate(operands: list[Any], terms: list[Labels], lo: Labels) -> Tensor:
    """Contract operands pair by pair until one is left, and put its dimensions in order."""
    sizes = check_sizes(operands, terms)
    if raw(operands[0]).dtype.kind in "bui":
        if any(summed_alone(name, operands, terms) for name in set().union(*terms) - set(lo)):
            operands = [cast(x, np.dtype(np.int64)) for x in operands]  # sums of integers count in int64
    while len(operands) > 1:
        i, j = cheapest(terms, lo, sizes)
        b, lb = operands.pop(j), terms.pop(j)
        a, la = operands.pop(i), terms.pop(i)
        product, made = met(a, la, b, lb, tuple(terms), lo)
        operands.insert(i, product)
        terms.insert(i, made)
    if terms[0] == lo:
        return operands[0]
    x, labels = summed_out(operands[0], terms[0], set(lo))
    return x if labels == lo else permute(x, tuple(labels.index(n) for n in lo))


@function()
def einsum(*args: object) -> Tensor:
    """Sums of products of operands, dimensions named by letters: einsum("bij,bjk->bik", a, b).

    Without "->" the output has the letters that occur once, in order; "..." stands for dimensions that broadcast. Also as
    einsum(a, [0, 1], b, [1, 2], [0, 2]).

    >>> import rushlight as torch
    >>> torch.einsum("ij,ij->i", torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and "
                         "its subscripts list")  # fmt: skip
    if isinstance(args[0], str):
        operands = list(args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:])
        if not operands:
            raise ValueError("einsum(): must provide at least one operand")
        terms = output = None
    else:
        operands, terms, output = from_lists(args)
    for i, x in enumerate(operands):
        if not isinstance(raw(x), np.ndarray):
            raise TypeError(f"einsum(): operand {i} must be Tensor, not {kind_of(raw(x))}")
        same_dtype("einsum", operands[0], x, ("operand 0", f"operand {i}"))
    ndims = tuple([raw(x).ndim for x in operands])
    labels, lo = read(args[0], ndims) if terms is None else labelled(ndims, terms, output)
    pairs = [without_repeats(x, each, i) for i, (x, each) in enumerate(zip(operands, labels, strict=True))]
    return evaluate([x for x, _ in pairs], [each for _, each in pairs], lo)
