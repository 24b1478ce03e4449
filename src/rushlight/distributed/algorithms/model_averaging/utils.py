"""Parameters averaged over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.coalescing import all_reduce_coalesced
from rushlight.distributed.collectives import ReduceOp, outside
from rushlight.tensor import Tensor

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Tensor], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their means over the processes of a group: all for None.  Nothing happens outside of it."""
    if outside(process_group):
        return
    by_dtype: dict[Any, list[Tensor]] = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p.detach())
    for same in by_dtype.values():
        all_reduce_coalesced(same, ReduceOp.AVG, process_group)


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """Those among parameters, or the parameters of an optimizer's groups, that have a gradient.  Raises NotImplementedError for what is neither."""
    found: list[Tensor] = []
    for given in params:
        if not isinstance(given, Tensor | dict):
            raise NotImplementedError(
                f"get_params_to_average: Parameter input of type {type(given)} is not supported: "
                "expected parameters or the groups of an optimizer"
            )
        some = [given] if isinstance(given, Tensor) else given["params"]
        found += [p for p in some if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """`average_parameters` of those among parameters, or of an optimizer's groups, that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)
