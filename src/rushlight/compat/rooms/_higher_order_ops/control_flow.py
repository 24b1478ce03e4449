"""Branches, loops and scans over functions of tensors: Python runs them, and gradients go through what ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics import dtypes
from rushlight.levels.batch import batches_of
from rushlight.ops.elementwise.clamp import where
from rushlight.ops.shape.join import stack
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["cond", "map", "scan", "while_loop"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`.

    pred: a number or a tensor of one element; under `vmap`, where it differs from sample to sample, both functions run.
    operands: a tuple or list of tensors and structures of them.  Raises RuntimeError for another `pred`, other operands, and for
    what is no function.

    >>> import rushlight as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.cond(x.sum() > 2, torch.square, torch.neg, (x,))
    tensor([1., 4.])
    """
    check_branches(pred, true_fn, false_fn, operands)
    if isinstance(pred, Tensor) and batches_of(pred):  # it differs from sample to sample: both, and a choice
        one, other = (_pytree.tree_flatten(fn(*operands)) for fn in (true_fn, false_fn))
        chosen = [where(pred, a, b) for a, b in zip(one[0], other[0], strict=True)]
        return _pytree.tree_unflatten(chosen, one[1])
    return (true_fn if pred else false_fn)(*operands)


def check_branches(pred: Any, true_fn: object, false_fn: object, operands: Any) -> None:
    """Raise RuntimeError where `cond` does not take its arguments."""
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(isinstance(x, Tensor) for x in _pytree.tree_leaves(operands)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
                           f"but got {operands}.")  # fmt: skip


def check_alike(which: str, lhs: list[Any], rhs: list[Any]) -> None:
    """Raise RuntimeError unless values are as many, and tensors among them of the same shapes and dtypes."""
    if len(lhs) != len(rhs):
        raise RuntimeError(f"Expected {which} to have same number of outputs but got lhs:{len(lhs)} and rhs:{len(rhs)}")
    for i, (one, other) in enumerate(zip(lhs, rhs, strict=True)):
        for word in ("shape", "dtype"):
            have, want = getattr(one, word, None), getattr(other, word, None)
            if have != want:
                raise RuntimeError(f"Expected {which} to have same metadata but found: pair[{i}] differ in "
                                   f"'{word}: {have} vs {want}'")  # fmt: skip


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: object) -> Any:
    """What `body_fn` makes of the values again and again, as long as `cond_fn` of them holds.

    carried_inputs: a tuple or list of tensors and numbers.  body_fn: gives as many as it gets, in a tuple or list; one alone may
    come without, and is returned so.  Raises RuntimeError for what is no function, for another number of values and
    for tensors of other shapes or dtypes, TypeError for values in no tuple.

    >>> import rushlight as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.tensor(1.0)))
    (tensor(3), tensor(8.))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError(f"Expect cond_fn and body_fn to be callable, got {cond_fn!r} and {body_fn!r}.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise TypeError(
            f"torch.while_loop: carried_inputs must be a tuple or list, got {type(carried_inputs).__name__}"
        )
    carried: Any = tuple(carried_inputs)
    result: Any = carried
    while holds(cond_fn(*carried)):
        result = body_fn(*carried)
        made = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        check_alike("body_fn_output and carried_inputs", list(made), list(carried))
        carried = made
    return result


def holds(answer: Any) -> bool:
    """The truth of what a condition gave.  Raises RuntimeError for what is neither a bool nor a tensor of one."""
    if isinstance(answer, bool) or (isinstance(answer, Tensor) and answer.numel() == 1 and answer.dtype is dtypes.bool):
        return bool(answer)
    raise RuntimeError(f"torch.while_loop: cond_fn must give a bool or a tensor of one bool, got {answer!r}")


SIZES = {"scan": "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0.",
         "map": "Leading dimensions of mapped xs cannot be 0."}  # fmt: skip


def rows_of(name: str, xs: object, dim: int) -> tuple[list[Tensor], Any, int]:
    """The tensors of a structure with `dim` in front, the structure, and their size there."""
    leaves, structure = _pytree.tree_flatten(xs)
    moved = [leaf.movedim(dim, 0) if leaf.ndim else leaf for leaf in leaves]
    shapes = [leaf.shape for leaf in leaves]
    if any(not leaf.ndim or not len(leaf) for leaf in moved):
        raise RuntimeError(f"{SIZES[name]} Got shapes {shapes}.")
    if len({len(leaf) for leaf in moved}) > 1:
        raise RuntimeError(f"{name}: Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    return moved, structure, len(moved[0]) if moved else 0


def stacked(rows: list[Any], dim: int = 0) -> Any:
    """Structures of tensors as one of stacks."""
    if not rows:
        return []
    columns = zip(*(_pytree.tree_flatten(row)[0] for row in rows), strict=True)
    return _pytree.tree_unflatten([stack(list(column), dim) for column in columns], _pytree.tree_flatten(rows[0])[1])


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: object, xs: object, *, dim: int = 0, reverse: bool = False,
         ) -> tuple[Any, Any]:  # fmt: skip
    """The last carry, and the results of `combine_fn(carry, x)`, which gives a carry and a result, stacked along `dim`.

    init: the first carry, a tensor or a structure of them.  xs: of one size along `dim`.  reverse: from the end; results lie where
    their x does.  Raises RuntimeError for what is no function, for sizes that differ or are 0, and for carries of
    another structure, shape or dtype.

    >>> import rushlight as torch
    >>> torch._higher_order_ops.scan(lambda total, x: (total + x, total * 2), torch.tensor(0.0), torch.arange(4.0))
    (tensor(6.), tensor([0., 0., 2., 6.]))
    """
    check_scanned(combine_fn, init, xs, reverse)
    moved, structure, n = rows_of("scan", xs, dim)
    carry, rows = init, []
    for i in reversed(range(n)) if reverse else range(n):
        made = combine_fn(carry, _pytree.tree_unflatten([leaf[i] for leaf in moved], structure))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise RuntimeError(f"scan: combine_fn must give a carry and a result, got {type(made).__name__}")
        check_alike("init and carry", *(_pytree.tree_leaves(x) for x in (carry, made[0])))
        if _pytree.tree_flatten(made[0])[1] != _pytree.tree_flatten(carry)[1]:
            raise RuntimeError("scan: combine_fn must give a carry of init's structure")
        carry = made[0]
        rows.append(made[1])
    return carry, stacked(rows[::-1] if reverse else rows, dim)


def check_scanned(combine_fn: object, init: object, xs: object, reverse: object) -> None:
    """Raise RuntimeError where `scan` does not take its arguments."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    check_reverse(reverse)
    if not _pytree.tree_leaves(init):
        raise RuntimeError("scan() operator requires init leaves.")
    for word, given in (("init", init), ("xs", xs)):
        for x in _pytree.tree_leaves(given):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"All {word} leaves must be a Tensor but got {x}")


def check_reverse(reverse: object) -> None:
    """Raise RuntimeError for what is no bool."""
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` of each x in the first dimension of `xs`, stacked.  Raises RuntimeError for sizes that differ or are 0."""
    leaves = _pytree.tree_leaves(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    moved, structure, n = rows_of("map", xs, 0)
    return stacked([f(_pytree.tree_unflatten([leaf[i] for leaf in moved], structure), *args) for i in range(n)])
