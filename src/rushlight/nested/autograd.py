"""Gradients of nested tensors by `torch.autograd.grad`, nested alike."""

from __future__ import annotations

from typing import Any

from rushlight.basics.tree import tree_map
from rushlight.dispatch.named import Named
from rushlight.nested.tensor import Nested
from rushlight.tensor import Tensor

_autograd: Any = Named("autograd")


def values_of(x: object) -> Any:
    """The values of a nested tensor; everything else as it is."""
    return x._values if isinstance(x, Nested) else x


def grad(outputs: Any, inputs: object, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    """Gradients for `inputs`, nested where they are."""
    from rushlight import autograd

    given = inputs if isinstance(inputs, tuple | list) else (inputs,)
    args, kwargs = tree_map(values_of, (args, kwargs))
    found = autograd.grad(tree_map(values_of, outputs), [values_of(x) for x in given], *args, **kwargs)
    return tuple(
        x._with(g) if g is not None and isinstance(x, Nested) else g for x, g in zip(given, found, strict=True)
    )


for _kind in Nested.__subclasses__():
    _kind.TABLE["torch.autograd.grad"] = grad
