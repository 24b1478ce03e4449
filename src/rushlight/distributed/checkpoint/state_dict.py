"""State dicts of models and optimizers by the names of parameters, however the model is wrapped and sharded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.basics import groups
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.objects import broadcast_object_list
from rushlight.distributed.tensor.dtensor import DTensor, spread
from rushlight.distributed.tensor.rules import filled
from rushlight.engine.modes import no_grad
from rushlight.nn.modules.module import Module, _IncompatibleKeys
from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.stepper import Stepper
from rushlight.tensor import Tensor, wrap

_PG, _STATE = "param_groups", "state"  # what an optimizer's state dict has

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
           "set_optimizer_state_dict", "set_state_dict"]  # fmt: skip


@dataclass
class StateDictOptions:
    """What state dicts are like.

    full_state_dict: of whole tensors, which all processes bring together (and give, where they set them); cpu_offload: with it, on
    the first process alone; ignore_frozen_params: without parameters that require no grad; strict: as `load_state_dict` has it;
    broadcast_from_rank0: what is set is that of the first process; flatten_optimizer_state_dict: one level, by names with dots.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.")


def plain_name(model: Module, name: str) -> str:
    """The name of a parameter without what wrappers add to it."""
    if isinstance(model, DistributedDataParallel):
        name = name.removeprefix("module.")
    for part in WRAPPERS:
        name = name.replace(part, "")
    return name


def given(options: StateDictOptions | None, submodules: object = None) -> StateDictOptions:
    """The options of a call.  Raises NotImplementedError for some modules alone."""
    if submodules:
        raise NotImplementedError("state dicts of submodules: pass the submodule as the model")
    return StateDictOptions() if options is None else options


def shown(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """A state dict as the options want it: whole tensors, on the first process alone."""
    if not options.full_state_dict:
        return state
    rank = groups.required().rank() if groups.world() is not None else 0
    found = {}
    for key, value in state.items():
        value = shown(value, options) if isinstance(value, dict) else value
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        found[key] = whole
        if options.cpu_offload and rank and not isinstance(whole, dict):
            del found[key]
    return found


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, with DTensors where it is sharded, by names without what wrappers add.  All processes call this."""
    chosen = given(options, submodules)
    frozen = (
        {name for name, p in model.named_parameters() if not p.requires_grad} if chosen.ignore_frozen_params else set()
    )
    return shown(
        {plain_name(model, key): value for key, value in model.state_dict().items() if key not in frozen}, chosen
    )


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Give a model a state dict that `get_model_state_dict` returned, or an ordinary one of whole tensors."""
    chosen = given(options)
    names = {plain_name(model, key): key for key in model.state_dict()}
    if chosen.broadcast_from_rank0:
        model_state_dict = from_first(model_state_dict)
    found = {names.get(key, key): value for key, value in model_state_dict.items()}
    strict = chosen.strict and not chosen.ignore_frozen_params
    return model.load_state_dict(found, strict=strict)


def from_first(state: dict[str, Any]) -> dict[str, Any]:
    """The state dict of the first process, on all.  Its tensors travel one by one."""
    outline: list[Any] = [{key: (tuple(v.shape), v.dtype) if isinstance(v, Tensor) else v for key, v in state.items()
                           if not isinstance(v, dict)}]  # fmt: skip
    inner: list[Any] = [[key for key, v in state.items() if isinstance(v, dict)]]
    broadcast_object_list(outline)
    broadcast_object_list(inner)
    first = groups.required().rank() == 0
    found: dict[str, Any] = {}
    for key in inner[0]:
        found[key] = from_first(state.get(key, {}))
    for key, value in outline[0].items():
        if not (isinstance(value, tuple) and len(value) == 2 and hasattr(value[1], "numpy")):
            found[key] = value
            continue
        found[key] = state[key].detach().contiguous() if first else wrap(np.empty(value[0], value[1].numpy))
        broadcast(found[key], 0)
    return found


def several(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    """One optimizer, or an iterable of them, as a list."""
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def started(optimizer: Optimizer) -> None:
    """Give an optimizer that has not stepped the state that its first step would begin with."""
    if optimizer.state:
        return
    if isinstance(optimizer, Stepper):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.requires_grad:
                    optimizer._start(optimizer.state[p], p, group)


def names_of(model: Module, optimizers: Iterable[Optimizer]) -> dict[int, str]:
    """The names of the optimizers' parameters, by identity.  Raises ValueError for one that is not of the model."""
    found = {id(p): plain_name(model, name) for name, p in model.named_parameters()}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if any(id(p) not in found for p in group["params"]):
                raise ValueError(
                    "get_optimizer_state_dict: expected an optimizer of the model's parameters, got one with others"
                )
    return found


def get_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
                             options: StateDictOptions | None = None) -> dict[str, Any]:  # fmt: skip
    """The state and the groups of optimizers, by the names of the model's parameters.  All processes call this."""
    chosen, every = given(options, submodules), several(optimizers)
    names = names_of(model, every)
    state: dict[str, Any] = {}
    param_groups: list[dict[str, Any]] = []
    for optimizer in every:
        started(optimizer)
        for group in optimizer.param_groups:
            listed = [p for p in group["params"] if p.requires_grad or not chosen.ignore_frozen_params]
            for p in listed:
                if p in optimizer.state:
                    state[names[id(p)]] = {key: lying(p, value) for key, value in optimizer.state[p].items()}
            param_groups.append({**{k: v for k, v in group.items() if k not in ("params", "param_names")},
                                 "params": [names[id(p)] for p in listed]})  # fmt: skip
    found = {"state": shown(state, chosen), "param_groups": param_groups}
    return flattened(found) if chosen.flatten_optimizer_state_dict else found


def lying(p: Any, value: Any) -> Any:
    """A value of a parameter's state: one of the size of its part lies as it does."""
    like = isinstance(value, Tensor) and p._spread and not value._spread and value.dim() > 0
    return spread(value, p._spec) if like and value._held.shape == p._held.shape else value


def flattened(found: dict[str, Any]) -> dict[str, Any]:
    """State and groups in one level."""
    flat = {f"state.{name}.{key}": value for name, one in found["state"].items() for key, value in one.items()}
    for group in found["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def unflattened(
    flat: dict[str, Any], names: Iterable[str], optimizers: Iterable[Optimizer], by_id: dict[int, str]
) -> dict[str, Any]:
    """The reverse of `flattened`, for these optimizers."""
    state: dict[str, Any] = {}
    options: dict[str, dict[str, Any]] = {}
    for name in names:
        for where, lead in ((state, f"state.{name}."), (options, f"param_groups.{name}.")):
            part = {
                key.removeprefix(lead): value
                for key, value in flat.items()
                if key.startswith(lead) and "." not in key[len(lead) :]
            }
            if part:
                where[name] = part
    listed = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            own = [by_id[id(p)] for p in group["params"]]
            listed.append({**(options.get(own[0], {}) if own else {}), "params": own})
    return {"state": state, "param_groups": listed}


def set_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *,
                             options: StateDictOptions | None = None) -> None:  # fmt: skip
    """Give optimizers a state dict that `get_optimizer_state_dict` returned, on any number of processes.

    Raises ValueError where its groups do not fit.
    """
    chosen, every = given(options), several(optimizers)
    names = names_of(model, every)
    if chosen.broadcast_from_rank0:
        optim_state_dict = from_first(optim_state_dict)
    if "state" not in optim_state_dict:
        optim_state_dict = unflattened(optim_state_dict, list(names.values()), every, names)
    for optimizer in every:
        optimizer.load_state_dict(packed_for(model, optimizer, optim_state_dict))


def packed_for(model: Module, optimizer: Optimizer, optim_state_dict: dict[str, Any]) -> dict[str, Any]:
    """What an optimizer's `load_state_dict` takes, of a state dict by names.  Raises ValueError where its groups do not fit."""
    names, number = names_of(model, [optimizer]), 0
    groups_packed: list[dict[str, Any]] = []
    state: dict[int, Any] = {}
    for group in optimizer.param_groups:
        own = [names[id(p)] for p in group["params"]]
        theirs = matching(list(optim_state_dict["param_groups"]), own)
        groups_packed.append({**theirs, "params": list(range(number, number + len(own)))})
        for p, name in zip(group["params"], own, strict=True):
            if name in optim_state_dict["state"]:
                state[number] = {key: part(p, value) for key, value in optim_state_dict["state"][name].items()}
            number += 1
    return {"state": state, "param_groups": groups_packed}


def matching(saved: list[dict[str, Any]], own: list[str]) -> dict[str, Any]:
    """The saved group that has an optimizer's parameters.  Raises ValueError where none has."""
    for group in saved:
        if set(group["params"]) & set(own) or (not own and not group["params"]):
            return group
    raise ValueError(
        f"set_optimizer_state_dict: no group of the state dict has the parameters {', '.join(own[:3])}, ..."
    )


def part(p: Any, value: Any) -> Any:
    """A value of the state of a parameter, of which this process takes its part where the parameter is sharded."""
    if isinstance(value, DTensor):
        return value if p._spread and value._spec == p._spec else taken(p, value.full_tensor())
    if p._spread and isinstance(value, Tensor) and value.dim() > 0 and tuple(value.shape) == tuple(p.shape):
        return taken(p, value)
    return value


def taken(p: Any, whole: Tensor) -> Any:
    """Of a whole tensor the part that this process has of a parameter."""
    if not p._spread:
        return whole
    local = spread(wrap(np.empty(p._held.shape, whole._held.dtype)), p._spec)
    with no_grad():
        return filled(local, p._spec.cut(whole._array))


def get_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
                   options: StateDictOptions | None = None) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The state dicts of a model and of its optimizers."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options))  # fmt: skip


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Give a model and its optimizers the state dicts that `get_state_dict` returned."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
