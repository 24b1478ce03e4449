"""FullyShardedDataParallel: the older way to call ``fully_shard``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from rushlight.basics import groups
from rushlight.distributed.checkpoint import state_dict as by_name
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.fsdp.fully_shard import FSDPModule, fully_shard
from rushlight.distributed.fsdp.policies import MixedPrecisionPolicy
from rushlight.distributed.fsdp.wrap import chosen
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.clip_grad import clip_grad_norm_
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.groups import ProcessGroup

FLAT_PARAM = "_flat_param"  # as PyTorch calls the parameters of a unit put together, in the names of its files


class OptimStateKeyType(Enum):
    """By what the states of an optimizer are known."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
           "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
           "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings",
           "StateDictType"]  # fmt: skip

_CONFIGS: dict[StateDictType, tuple[Any, Any]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
}
_classes: dict[type, type] = {}


class FullyShardedDataParallel(FSDPModule):
    """A module whose parameters are dealt to processes: the module itself, of which this becomes a class.

    What it does is what ``fully_shard`` does, first for the modules inside that `auto_wrap_policy` names, then for
    the module; `.module` is the module, and the names of parameters are those it had.  `state_dict()` has whole
    tensors, unless `state_dict_type` says otherwise.

    Args:
        module: the same on all processes.
        process_group: all by default; device_mesh: instead, for HYBRID_SHARD of two dimensions.
        sharding_strategy: a `ShardingStrategy`, FULL_SHARD by default; NO_SHARD is refused.
        auto_wrap_policy: of ``torch.distributed.fsdp.wrap``.
        mixed_precision: a `MixedPrecision`.
        ignored_modules, ignored_states: modules and parameters that stay whole on each process.
        param_init_fn: called with each module that has parameters on the device meta, once it has memory: it gives them values.
        sync_module_states: give all processes the values of the first.

    Other options are accepted and have no effect.
    """

    _settings: StateDictSettings

    def __new__(cls, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
                cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None, backward_prefetch: Any = None,
                mixed_precision: MixedPrecision | None = None, ignored_modules: Any = None, param_init_fn: Any = None,
                device_id: Any = None, sync_module_states: bool = False, forward_prefetch: bool = False,
                limit_all_gathers: bool = True, use_orig_params: bool = False, ignored_states: Any = None,
                device_mesh: DeviceMesh | None = None) -> Any:  # fmt: skip
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        if strategy is ShardingStrategy.NO_SHARD:
            raise NotImplementedError("FullyShardedDataParallel(NO_SHARD): use DistributedDataParallel")
        if device_mesh is None and process_group is not None:
            device_mesh = DeviceMesh.from_group(process_group, "cpu")
        if strategy.name.lstrip("_").startswith("HYBRID") and (device_mesh is None or device_mesh.ndim != 2):
            raise ValueError(
                "FullyShardedDataParallel(HYBRID_SHARD): expected a device_mesh of two dimensions: replicate and shard"
            )
        without = left_out(ignored_modules, ignored_states)
        given = {id(p) for some in without for p in ([some] if isinstance(some, Tensor) else some.parameters())}
        ignored = {p for p in module.parameters() if id(p) in given}
        if sync_module_states:
            for tensor in (*module.parameters(), *module.buffers()):
                broadcast(
                    tensor.detach(), group=groups.required() if process_group is None else process_group, group_src=0
                )
        options: dict[str, Any] = {"mesh": device_mesh, "ignored_params": ignored}
        if mixed_precision is not None:
            options["mp_policy"] = MixedPrecisionPolicy(mixed_precision.param_dtype, mixed_precision.reduce_dtype)
        keep = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
        empty = [m for m in module.modules() if any(p._meta for p in m.parameters(recurse=False))]
        for inner in () if auto_wrap_policy is None else chosen(module, auto_wrap_policy, set(without)):
            if not isinstance(inner, FSDPModule):
                fully_shard(inner, reshard_after_forward=not keep, **options)
        fully_shard(module, reshard_after_forward=False if keep else None, **options)
        for part in empty:
            part.reset_parameters() if param_init_fn is None else param_init_fn(part)
        kind = type(module)
        if kind not in _classes:
            _classes[kind] = type(kind.__name__, (cls, kind), {"__module__": kind.__module__})
        module.__class__ = _classes[kind]
        module.__dict__["_settings"] = settings(StateDictType.FULL_STATE_DICT)
        return module

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The module has been made before."""

    @property
    def module(self) -> Any:
        """The module: this."""
        return self

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale gradients so that their norm over all processes is at most `max_norm`; the norm before."""
        this: Any = self
        return clip_grad_norm_(this.parameters(), max_norm, norm_type)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients add up whole on each process; they are averaged with those of the first pass behind it."""
        self.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.set_requires_gradient_sync(True)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The state dict as `state_dict_type` has it: of whole tensors, which all processes bring together, or of DTensors."""
        found = super().state_dict(*args, **kwargs)  # type: ignore[misc]
        if args or kwargs:
            return found
        options = self._settings
        full = options.state_dict_type is StateDictType.FULL_STATE_DICT
        first = isinstance(options.state_dict_config, FullStateDictConfig) and options.state_dict_config.rank0_only
        return by_name.shown(found, by_name.StateDictOptions(full_state_dict=full, cpu_offload=full and first))

    @staticmethod
    def set_state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
                            optim_state_dict_config: OptimStateDictConfig | None = None) -> StateDictSettings:  # fmt: skip
        """Say what the state dicts of a module are like; the settings before."""
        before: StateDictSettings = module._settings
        module.__dict__["_settings"] = settings(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What the state dicts of a module are like."""
        return module._settings  # type: ignore[no-any-return]

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
                        optim_state_dict_config: OptimStateDictConfig | None = None) -> Iterator[None]:  # fmt: skip
        """A block in which the state dicts of a module are of a type."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            module.__dict__["_settings"] = before

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
                           offload_to_cpu: bool = False, with_grads: bool = False) -> Iterator[None]:  # fmt: skip
        """A block in which parameters are whole; writeback: whether what is changed there is kept, each process its part."""
        units = module._units(recurse)
        for unit in units:
            unit.unshard()
        try:
            yield
        finally:
            for unit in units:
                for part in unit.parts if writeback else ():
                    part.keep()
                unit.reshard()

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: object = None, group: ProcessGroup | None = None
    ) -> dict[str, Any]:
        """The state of an optimizer by names of parameters, as `state_dict_type` has it."""
        options = model._settings
        full = options.state_dict_type is StateDictType.FULL_STATE_DICT
        config = options.optim_state_dict_config
        first = isinstance(config, FullOptimStateDictConfig) and config.rank0_only
        return by_name.get_optimizer_state_dict(
            model, optim, options=by_name.StateDictOptions(full_state_dict=full, cpu_offload=full and first)
        )

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Of what `optim_state_dict` returned, what ``optim.load_state_dict`` takes; load_directly: give it to the optimizer at once."""
        found = by_name.packed_for(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The modules that are sharded by themselves."""
        found = [m for m in module.modules() if isinstance(m, FSDPModule)]
        return found[:1] if root_only else found


def left_out(modules: Any, states: Any) -> list[Any]:
    """The modules and parameters that stay whole."""
    return [*(() if modules is None else modules), *(() if states is None else states)]


def settings(
    kind: StateDictType, config: StateDictConfig | None = None, optim: OptimStateDictConfig | None = None
) -> StateDictSettings:
    """What state dicts are like, with what is usual."""
    usual, usual_optim = _CONFIGS[kind]
    return StateDictSettings(kind, usual() if config is None else config, usual_optim() if optim is None else optim)
