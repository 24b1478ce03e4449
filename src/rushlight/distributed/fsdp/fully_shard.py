"""``fully_shard``: parameters, gradients and optimizer state of a module dealt to processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.distributed.device_mesh import DeviceMesh, usual
from rushlight.distributed.fsdp.parts import Part
from rushlight.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from rushlight.distributed.fsdp.units import Unit
from rushlight.distributed.tensor.dtensor import ShardedParameter
from rushlight.distributed.tensor.layouts import Spec
from rushlight.distributed.tensor.placement_types import Placement, Replicate, Shard
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


def fully_shard(module: Module, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
                mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
                ignored_params: set[Parameter] | None = None, dp_mesh_dims: object = None) -> Any:  # fmt: skip
    """Deal the parameters of a module to processes: each keeps a part, with its gradient and optimizer state.

    All parameters that are not dealt yet are gathered together before each forward of the module, freed after it, and again in
    backward, where gradients are averaged over processes, each of which gets its part.  So call it for each block of a model
    first, then for the model: the most that is whole at once are two blocks.  Make the optimizer afterwards, of the parameters,
    which are then DTensors; an optimizer in backward steps each part as it arrives.

    Args:
        module: a module, or a list of modules that are called one after the other.  It gets a class of its own, which is an
            `FSDPModule` too, and is returned.
        mesh: processes in a line, all by default; of two dimensions, the first replicates and the second shards.
        reshard_after_forward: False keeps parameters whole until backward.  None: as False for the outermost module.
        shard_placement_fn: may give Shard(0) or None for a parameter, nothing else.
        mp_policy: a `MixedPrecisionPolicy`.
        ignored_params: parameters that every process keeps whole.

    Every process keeps the part of its own values: build the same module on all.  A module on the device meta gets memory for the
    parts, full of NaN: give it values, by `to_empty` and each module's `reset_parameters`, or a checkpoint.  Raises
    ValueError for what cannot be dealt: parameters without dimensions, or dealt already.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    >>> for layer in (model[0], model[2], model):
    ...     _ = torch.distributed.fsdp.fully_shard(layer)
    >>> model(torch.ones(2, 4)).sum().backward()
    >>> model[0].weight.placements, model[0].weight.grad.full_tensor().shape
    ((Shard(dim=0),), torch.Size([4, 4]))
    >>> torch.distributed.destroy_process_group()
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    check_modules(modules, reshard_after_forward)
    grid = usual(mesh)
    if grid.ndim > 2:
        raise ValueError(f"fully_shard: expected a mesh of one dimension, or of two: replicate and shard, got {grid}")
    placements: tuple[Placement, ...] = (*(Replicate() for _ in range(grid.ndim - 1)), Shard(0))
    group, replicas = grid.get_group(grid.ndim - 1), grid.get_group(0) if grid.ndim == 2 else None
    policy = MixedPrecisionPolicy() if mp_policy is None else mp_policy
    low = None if policy.param_dtype is None else policy.param_dtype.numpy
    parts = []
    for name, param in chosen(modules, ignored_params or set()):
        placed = None if shard_placement_fn is None else shard_placement_fn(param)
        if placed not in (None, Shard(0)):
            raise NotImplementedError(
                f"fully_shard: {name} was to be placed {placed}: parameters are dealt along dimension 0"
            )
        floats = low is not None and param.is_floating_point()
        parts.append(Part(name, param, Spec(grid, placements, tuple(param.shape)), group, low if floats else None))
    unit = Unit(
        modules, parts, group, replicas, None if reshard_after_forward is None else bool(reshard_after_forward), policy
    )
    for each in modules:
        each.__class__ = sharded_class(type(each))
        each.__dict__["_fsdp_unit"] = unit
        each.register_state_dict_pre_hook(lambda *_: unit.reshard())
        each.register_load_state_dict_pre_hook(lambda *_: unit.reshard())
    return module


def check_modules(modules: Sequence[Any], reshard_after_forward: object) -> None:
    """Raise for what cannot be sharded."""
    for each in modules:
        if not isinstance(each, Module):
            raise ValueError(f"fully_shard: expected a module or a list of them, got {type(each).__name__}")
        if isinstance(each, ModuleList | ModuleDict):
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward, got a {type(each).__name__}: shard what is in it"
            )
        if isinstance(each, FSDPModule):
            raise ValueError(f"fully_shard was called for this {type(each).__name__} before")
    if not isinstance(reshard_after_forward, (bool, type(None))):
        raise NotImplementedError(
            f"fully_shard: reshard_after_forward={reshard_after_forward!r}: parts of fewer processes are not kept: "
            "pass True, False or None"
        )


def chosen(modules: Sequence[Any], ignored: set[Any]) -> list[tuple[str, Any]]:
    """The parameters that no unit has yet, by name.  Raises ValueError for one that cannot be dealt."""
    left = {id(p) for p in ignored}
    found: dict[int, tuple[str, Any]] = {}
    for module in modules:
        for name, p in module.named_parameters():
            if id(p) in left or id(p) in found or type(p) is ShardedParameter:
                continue
            if p.__class__ is not Parameter:
                raise ValueError(
                    f"fully_shard: expected a parameter, {name} is a {type(p).__name__}: make it an ordinary one before"
                )
            if p.dim() == 0:
                raise ValueError(
                    f"fully_shard: {name} has no dimensions, and cannot be dealt to processes: make it of shape [1]"
                )
            found[id(p)] = (name, p)
    return list(found.values())


_classes: dict[type, type] = {}


def sharded_class(cls: type) -> type:
    """The class of a module that is sharded: FSDPModule and the module's own."""
    if cls not in _classes:
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    return _classes[cls]


class FSDPModule:
    """What a module that `fully_shard` was called for can do beside its own."""

    _fsdp_unit: Unit

    def __deepcopy__(self, memo: object) -> Tensor:
        raise NotImplementedError(
            f"copying {type(self).__name__}: each process has a part of it. Build another module, shard it, and give it the state dict"
        )

    def _units(self, recurse: bool = True) -> list[Unit]:
        this: Any = self
        found = [m.__dict__["_fsdp_unit"] for m in (this.modules() if recurse else [this]) if isinstance(m, FSDPModule)]
        return list(dict.fromkeys(found))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Have the module's own parameters whole; all processes call this.  async_op: return a handle to wait with."""
        self._fsdp_unit.begin()
        handle = UnshardHandle(self._fsdp_unit)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Keep the parts of the module's own parameters alone."""
        self._fsdp_unit.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether gradients are averaged over processes; else they are kept whole, for accumulation, and averaged with the next."""
        for unit in self._units(recurse):
            unit.sync = bool(requires_gradient_sync)

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are averaged over replicas in each pass: True alone is supported with replicas."""
        if not requires_all_reduce and any(unit.replicas is not None for unit in self._units(recurse)):
            raise NotImplementedError("set_requires_all_reduce(False): use set_requires_gradient_sync(False)")

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted: every backward waits for its gradients."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters without a gradient are freed after backward; those with one always are."""
        for unit in self._units(recurse):
            unit.after_backward = bool(reshard_after_backward)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed after forward."""
        for unit in self._units(recurse):
            unit.after_forward = bool(reshard_after_forward)

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Which modules are gathered ahead while this one's forward runs; by default the one that came next before."""
        self._fsdp_unit.ahead = [m._fsdp_unit for m in modules]

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Which modules are gathered ahead while this one's backward runs; by default the one whose forward ended before."""
        self._fsdp_unit.ahead_backward = [m._fsdp_unit for m in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by, in place of the number of processes."""
        self._fsdp_unit.divisor = float(factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Accepted for True: backward gathers what it needs."""
        if not unshard_in_backward:
            raise NotImplementedError("set_unshard_in_backward(False): backward gathers what it needs")


class UnshardHandle:
    """Waits for parameters that are gathered."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Have them whole."""
        self._unit.unshard()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method count as a forward: parameters are whole while it runs.  Nothing for a module that is not sharded."""
    if not isinstance(module, FSDPModule):
        return
    method, unit = getattr(module, method_name), module._fsdp_unit

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        changed = unit.before(module, args, kwargs)
        args, kwargs = (args, kwargs) if changed is None else changed
        output = method(*args, **kwargs)
        return unit.after(unit.modules[-1](), args, output)

    module.__dict__[method_name] = wrapped
