"""Options of ``FullyShardedDataParallel``."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
           "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "ShardedOptimStateDictConfig",
           "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType"]  # fmt: skip


class ShardingStrategy(enum.Enum):
    """What is dealt: FULL_SHARD frees parameters after forward, SHARD_GRAD_OP keeps them until backward; HYBRID ones replicate along
    the first dimension of a mesh."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(enum.Enum):
    """When the next module is gathered in backward: it is while one computes, whichever is asked for."""

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


class StateDictType(enum.Enum):
    """What a state dict has: whole tensors, or DTensors."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


@dataclass(frozen=True)
class MixedPrecision:
    """Data types: of parameters while they are whole, of sums of gradients, of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """Where parts lie: in the memory of the CPU, as they do anyway."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How a state dict is made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Of whole tensors; rank0_only: on the first process alone."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of DTensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How a state dict of an optimizer is made."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Of whole tensors; rank0_only: on the first process alone."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of parts."""


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of DTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict_type` set."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
