"""DTensors made as tensors are: each process makes its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.distributed.device_mesh import DeviceMesh, usual
from rushlight.distributed.tensor.dtensor import DTensor, distribute_tensor, spread
from rushlight.distributed.tensor.layouts import Spec
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, checked
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import wrap

__all__ = ["distribute_module", "empty", "full", "ones", "rand", "randn", "zeros"]


def _made(name: str, size: Any, value: Any, options: dict[str, Any]) -> DTensor:
    """A DTensor of a size, full of a value (None: whatever is there)."""
    unknown = set(options) - {"dtype", "layout", "requires_grad", "device_mesh", "placements"}
    if unknown:
        raise TypeError(f"{name}: unexpected arguments {', '.join(sorted(unknown))}")
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    mesh = usual(options.get("device_mesh"))
    where = checked(name, options.get("placements"), mesh, len(shape))
    if any(isinstance(one, Partial) for one in where):
        raise ValueError(f"{name}: expected Shard(dim) or Replicate(), got {list(where)}")
    spec = Spec(mesh, where, shape)
    dtype = options.get("dtype") or (dtypes.get_default_dtype() if value is None else _usual(value))
    local = (
        np.empty(spec.local_shape(), dtype.numpy) if value is None else np.full(spec.local_shape(), value, dtype.numpy)
    )
    return spread(wrap(local), spec).requires_grad_(options.get("requires_grad", False))  # type: ignore[no-any-return]


def _usual(value: object) -> Any:
    """The dtype of a tensor full of a number."""
    return (
        dtypes.bool
        if isinstance(value, bool)
        else dtypes.int64
        if isinstance(value, int)
        else dtypes.get_default_dtype()
    )


def empty(*size: Any, **options: Any) -> DTensor:
    """A DTensor of whatever values are there.  Options of all of these: dtype, requires_grad, device_mesh, placements."""
    return _made("empty", size, None, options)


def zeros(*size: Any, **options: Any) -> DTensor:
    """A DTensor of zeros."""
    return _made("zeros", size, 0.0, options)


def ones(*size: Any, **options: Any) -> DTensor:
    """A DTensor of ones."""
    return _made("ones", size, 1.0, options)


def full(size: Sequence[int], fill_value: object, **options: object) -> DTensor:
    """A DTensor full of a number."""
    return _made("full", (size,), fill_value, options)


def _random(name: str, size: object, options: dict[str, Any], fill: Callable[[Any], Any]) -> DTensor:
    wanted = options.pop("requires_grad", False)
    found = _made(name, size, None, options)
    fill(found)
    return found.requires_grad_(wanted)  # type: ignore[return-value]


def rand(*size: object, **options: object) -> DTensor:
    """A DTensor of random numbers in [0, 1): those of the whole, where all processes have one seed."""
    return _random("rand", size, options, lambda x: x.uniform_())


def randn(*size: Any, **options: Any) -> DTensor:
    """A DTensor of normal random numbers: those of the whole, where all processes have one seed."""
    return _random("randn", size, options, lambda x: x.normal_())


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[..., Any] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Let the parameters and buffers of a module be DTensors: as ``partition_fn(name, module, mesh)`` makes them, else replicated.

    input_fn(module, inputs, mesh) and output_fn(module, outputs, mesh) change what goes in and comes out.
    """
    mesh = usual(device_mesh)
    everywhere: list[Placement] = [Replicate()] * mesh.ndim
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, p in list(part._parameters.items()):
            if p is not None and not isinstance(p, DTensor):
                part.register_parameter(key, Parameter(distribute_tensor(p.data, mesh, everywhere), p.requires_grad))
        for key, buffer in list(part._buffers.items()):
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh, everywhere)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module
