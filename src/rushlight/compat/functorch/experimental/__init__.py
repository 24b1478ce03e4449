"""``functorch.experimental``: transformations that `torch.func` has by now, and `chunk_vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` of a number of chunks of the samples, one after the other: `torch.vmap` has `chunk_size` for it.

    >>> import rushlight as torch
    >>> from rushlight.compat.functorch.experimental import chunk_vmap
    >>> chunk_vmap(torch.sum, chunks=3)(torch.ones(5, 2))
    tensor([2., 2., 2., 2., 2.])
    """

    @functools.wraps(func)
    def chunked(*args: Any, **kwargs: Any) -> Any:
        size = -(-samples(args, in_dims) // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(size, 1))(*args, **kwargs)

    return chunked


def samples(args: tuple[Any, ...], in_dims: Any) -> int:
    """How many samples arguments have: 1 where no dimension says it."""
    leaves, structure = _pytree.tree_flatten(args)
    dims = _pytree._broadcast_to_and_flatten(tuple(in_dims) if isinstance(in_dims, list) else in_dims, structure) or []
    found = [x.shape[d] for x, d in zip(leaves, dims, strict=False) if isinstance(x, Tensor) and isinstance(d, int)]
    return int(found[0]) if found else 1
