"""``torch._higher_order_ops.associative_scan``: running results of a function that is associative, as `cumsum` is those of a sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.compat.rooms._higher_order_ops.control_flow import check_reverse
from rushlight.func import vmap
from rushlight.ops.shape.join import cat, stack
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: object, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """What `combine_fn` makes of all elements of a dimension up to each.

    combine_fn: makes one of two, of xs' structure without `dim`, and is associative.  xs: a tensor or a structure of tensors,
    of one size along `dim`.  reverse: from the end.  combine_mode: "generic"; "pointwise" is for GPUs.  A structure as xs,
    of the same shapes, with gradients.  ValueError for another mode, what is no function, and sizes that differ or are 0.

    The scan of neighbours' results, half as many, is every second result; the others take one more element: 2 n calls' work
    for n elements, in calls of many at once (Blelloch, Prefix sums and their applications, 1990).
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("generic", "pointwise"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise":
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on a GPU: say combine_mode='generic'"
        )
    check_reverse(reverse)
    leaves, structure = _pytree.tree_flatten(xs)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError(f"xs leaves must be a Tensor, got {leaves}")
    moved = [_in_front(leaf, dim, reverse) if leaf.ndim else leaf for leaf in leaves]
    if any(not leaf.ndim or not len(leaf) for leaf in moved):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if len({len(leaf) for leaf in moved}) != 1:
        raise ValueError(
            f"associative_scan: xs must have one size along dim {dim}, not 0, got {[tuple(x.shape) for x in leaves]}"
        )

    def combined(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        made = combine_fn(_pytree.tree_unflatten(left, structure), _pytree.tree_unflatten(right, structure))
        return _pytree.tree_flatten(made)[0]

    found = _scanned(vmap(combined), moved)
    return _pytree.tree_unflatten([_back(leaf, dim, reverse) for leaf in found], structure)


def _in_front(leaf: Tensor, dim: int, reverse: bool) -> Tensor:
    """A tensor whose first dimension is `dim`, in the order in which it is scanned."""
    moved = leaf.movedim(dim, 0)
    return moved.flip(0) if reverse else moved


def _back(leaf: Tensor, dim: int, reverse: bool) -> Tensor:
    """What `_in_front` did, undone."""
    return (leaf.flip(0) if reverse else leaf).movedim(0, dim)


def _scanned(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    """The running results along the first dimension."""
    size = len(xs[0])
    if size < 2:
        return xs
    odd = _scanned(combine, combine([x[: size - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    first = [x[:1] for x in xs]
    if size == 2:
        even = first
    else:
        behind = combine([x[: (size - 1) // 2] for x in odd], [x[2::2] for x in xs])
        even = [cat([x, y]) for x, y in zip(first, behind, strict=True)]
    return [_alternating(x, y) for x, y in zip(even, odd, strict=True)]


def _alternating(even: Tensor, odd: Tensor) -> Tensor:
    """One of each in turns.  even: (n or n + 1, *), odd: (n, *) -> (the sum of both, *)"""
    n = len(odd)
    pairs: Tensor = stack([even[:n], odd], dim=1).flatten(0, 1)
    joined: Tensor = cat([pairs, even[n:]]) if len(even) > n else pairs
    return joined


def _fake_associative_scan(combine_fn: Callable[[Any, Any], Any], xs: object, dim: int, reverse: bool = False) -> Any:
    """By which PyTorch's own tests compare it."""
    return associative_scan(combine_fn, xs, dim, reverse, combine_mode="generic")
