"""gradcheck of functions of sparse tensors: they are functions of the values that those store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.tensor import Tensor


def is_sparse(x: Tensor | float) -> bool:
    """Whether it is a sparse tensor of either layout."""
    kind: Any = x
    return isinstance(x, Tensor) and (kind.is_sparse or kind.is_sparse_csr)


def by_values(
    func: Callable[..., Any], inputs: tuple[Any, ...], masked: bool
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`func` and its inputs with the values of sparse ones that require grad in their places.

    Raises NotImplementedError for such inputs unless `masked`: there are no derivatives by elements that are not stored.
    """
    held = {i: x.detach() for i, x in enumerate(inputs) if is_sparse(x) and x.requires_grad}
    if not held:
        return func, inputs
    if not masked:
        raise NotImplementedError(
            f"gradcheck: input {min(held)} is sparse, and derivatives by it are those by the elements that it stores: pass "
            "masked=True"
        )
    held = {i: x.coalesce() if x.is_sparse else x for i, x in held.items()}

    def of_values(*given: Tensor) -> Any:
        return func(*(held[i]._with(x) if i in held else x for i, x in enumerate(given)))

    return of_values, tuple(held[i].values().clone().requires_grad_() if i in held else x for i, x in enumerate(inputs))
