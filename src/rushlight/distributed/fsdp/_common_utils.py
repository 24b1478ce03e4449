"""``torch.distributed.fsdp._common_utils``: questions about parameters that trainers ask."""

from __future__ import annotations

from rushlight import absent
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["_get_param_to_fqns", "_is_fsdp_flattened"]


def _is_fsdp_flattened(tensor: object) -> bool:
    """Whether a parameter is several put together: they stay by themselves here."""
    return False


def _get_param_to_fqns(model: Module, dedup_shared_params: bool = True) -> dict[Parameter, list[str]]:
    """The names of each parameter.  dedup_shared_params: one name for those that several modules share."""
    found: dict[Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=dedup_shared_params):
        found.setdefault(parameter, []).append(name)
    return found


absent.names(globals(), "fsdp.fully_shard keeps no such state", "TrainingState")
