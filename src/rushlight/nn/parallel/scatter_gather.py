"""Parts of inputs for several devices, and their outputs together: all devices are one memory here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch import functions as ops
from rushlight.tensor import Tensor

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: object) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def _made_like(obj: Any, items: Any) -> Any:
    """A list, tuple or named tuple of the kind of `obj`."""
    return type(obj)(*items) if is_namedtuple(obj) else type(obj)(items)


def scatter(inputs: object, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """One part of `inputs` for each target: tensors in chunks along `dim`, anything else as it is.  -> a list or tuple

    Tensors are looked for in lists, tuples and dicts. What a tensor has too few elements for gets none: then the parts are
    fewer than the targets.
    """
    if isinstance(inputs, Tensor):
        return inputs.chunk(len(target_gpus), dim)
    if isinstance(inputs, dict) and inputs:
        parts = zip(*(scatter(value, target_gpus, dim) for value in inputs.values()))
        return [type(inputs)(zip(inputs, part)) for part in parts]
    if isinstance(inputs, list | tuple) and inputs:
        return [_made_like(inputs, part) for part in zip(*(scatter(x, target_gpus, dim) for x in inputs))]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any],
                   dim: int = 0) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:  # fmt: skip
    """`scatter` of positional and of keyword arguments, as many parts of both."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(positional), len(named))
    positional += [()] * (count - len(positional))
    named += [{}] * (count - len(named))
    return tuple(positional), tuple(named)


def gather(outputs: list[Any] | tuple[Tensor, ...], target_device: object, dim: int = 0) -> Any:
    """The outputs for several targets as one: tensors joined along `dim`, of no dimensions stacked, None as None.

    Raises ValueError for dicts with different keys, TypeError for what cannot be joined.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        if all(t.dim() == 0 for t in outputs):
            return ops.stack(list(outputs))
        return ops.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(d) for d in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([d[k] for d in outputs], target_device, dim)) for k in first)
    if isinstance(first, list | tuple):
        return _made_like(first, (gather(part, target_device, dim) for part in zip(*outputs)))
    raise TypeError(
        f"gather: outputs must be tensors, None, or lists, tuples and dicts of them, got {type(first).__name__}"
    )
