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
    operands: a tuple or list.  Raises RuntimeError for another `pred`.

    >>> import rushlight as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.cond(x.sum() > 2, torch.square, torch.neg, (x,))
    tensor([1., 4.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"torch.cond: pred must be a bool or a tensor of one element, got {pred!r}")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(
            f"torch.cond: pred must be a bool or a tensor of one element, got one of shape {tuple(pred.shape)}"
        )
    if isinstance(pred, Tensor) and batches_of(pred):  # it differs from sample to sample: both, and a choice
        one, other = (_pytree.tree_flatten(fn(*operands)) for fn in (true_fn, false_fn))
        chosen = [where(pred, a, b) for a, b in zip(one[0], other[0], strict=True)]
        return _pytree.tree_unflatten(chosen, one[1])
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: object) -> Any:
    """What `body_fn` makes of the values again and again, as long as `cond_fn` of them holds.

    carried_inputs: a tuple or list of tensors and numbers.  body_fn: gives as many as it gets; one alone may come without a
    tuple.  Raises RuntimeError for what is no function and for another number of values, TypeError for values in no tuple.

    >>> import rushlight as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.tensor(1.0)))
    (tensor(3), tensor(8.))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError(f"torch.while_loop: cond_fn and body_fn must be functions, got {cond_fn!r} and {body_fn!r}")
    if not isinstance(carried_inputs, (tuple, list)):
        raise TypeError(
            f"torch.while_loop: carried_inputs must be a tuple or list, got {type(carried_inputs).__name__}"
        )
    carried = tuple(carried_inputs)
    while holds(cond_fn(*carried)):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(
                f"torch.while_loop: body_fn must give {len(carried)} values, as it gets, got {len(made)}"
            )
        carried = made
    return carried


def holds(answer: Any) -> bool:
    """The truth of what a condition gave.  Raises RuntimeError for what is neither a bool nor a tensor of one."""
    if isinstance(answer, bool) or (isinstance(answer, Tensor) and answer.numel() == 1 and answer.dtype is dtypes.bool):
        return bool(answer)
    raise RuntimeError(f"torch.while_loop: cond_fn must give a bool or a tensor of one bool, got {answer!r}")


def rows_of(name: str, xs: object, dim: int) -> tuple[list[Tensor], Any, int]:
    """The tensors of a structure with `dim` in front, the structure, and their size there."""
    leaves, structure = _pytree.tree_flatten(xs)
    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    if len({len(leaf) for leaf in moved}) > 1 or any(not len(leaf) for leaf in moved):
        shapes = [tuple(leaf.shape) for leaf in leaves]
        raise RuntimeError(f"{name}: xs must have one size along dim {dim}, not 0, got {shapes}")
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
    their x does.  Raises RuntimeError for what is no function, for sizes that differ or are 0, and for carries of another structure.

    >>> import rushlight as torch
    >>> torch._higher_order_ops.scan(lambda total, x: (total + x, total * 2), torch.tensor(0.0), torch.arange(4.0))
    (tensor(6.), tensor([0., 0., 2., 6.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan: combine_fn must be a function, got {combine_fn!r}")
    moved, structure, n = rows_of("scan", xs, dim)
    carry, rows = init, []
    for i in reversed(range(n)) if reverse else range(n):
        made = combine_fn(carry, _pytree.tree_unflatten([leaf[i] for leaf in moved], structure))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise RuntimeError(f"scan: combine_fn must give a carry and a result, got {type(made).__name__}")
        if _pytree.tree_flatten(made[0])[1] != _pytree.tree_flatten(carry)[1]:
            raise RuntimeError("scan: combine_fn must give a carry of init's structure")
        carry = made[0]
        rows.append(made[1])
    return carry, stacked(rows[::-1] if reverse else rows, dim)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` of each x in the first dimension of `xs`, stacked.  Raises RuntimeError for sizes that differ or are 0."""
    moved, structure, n = rows_of("map", xs, 0)
    return stacked([f(_pytree.tree_unflatten([leaf[i] for leaf in moved], structure), *args) for i in range(n)])
