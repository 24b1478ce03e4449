"""An optimizer that steps other tensors for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.optim.optimizer import Optimizer
from rushlight.tensor import Tensor

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within the block, the optimizer has other parameters, options and state; after it, those that it had.

    Args:
        optimizer: one that has stepped, so that it has state.
        swapin_parameters: as many tensors as it has parameters, in the order of its groups.
        swapin_optim_state: as `optimizer.state_dict()` gives it.  Its tensors are stepped in place; what else a step sets
            is forgotten.

    Raises RuntimeError for an optimizer without state, and where groups, options or numbers of parameters differ.

    Example:
        >>> import rushlight as torch
        >>> weight, other = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
        >>> optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
        >>> weight.grad = other.grad = torch.ones(2)
        >>> optimizer.step()
        >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"": other}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> weight.tolist(), other.tolist()
        ([0.5, 0.5], [-0.949999988079071, -0.949999988079071])
    """
    groups, state = _matching(optimizer, swapin_parameters, swapin_optim_state)
    former_state, former = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        for own, (given, params) in zip(optimizer.param_groups, groups, strict=True):
            own.update(given, params=params)
        optimizer.state = state
        yield
    finally:
        for own, before in zip(optimizer.param_groups, former, strict=True):
            own.clear()
            own.update(before)
        optimizer.state = former_state


def _matching(optimizer: Optimizer, tensors: dict[str, Tensor], packed: Any) -> tuple[Any, Any]:
    """For each group its options and tensors; and the state of each tensor."""
    _need(bool(optimizer.state), "an optimizer that has state: step it once before")
    _need(optimizer._in_backward is None, "an optimizer that steps by step(), not inside backward")
    _need(isinstance(packed, dict), "a dictionary as state_dict() gives it", packed)
    state, given = packed.get("state"), packed.get("param_groups")
    _need(isinstance(state, dict), "'state' to be a dictionary by numbers of parameters", state)
    _need(all(isinstance(each, dict) for each in state.values()), "'state' to hold a dictionary for each parameter")
    _need(isinstance(given, list), "'param_groups' to be a list of dictionaries", given)
    _need(
        len(given) == len(optimizer.param_groups), f"{len(optimizer.param_groups)} parameter groups, got {len(given)}"
    )
    left, groups, moved, known = list(tensors.values()), [], defaultdict(dict), set()  # type: ignore[var-annotated]
    for number, (own, group) in enumerate(zip(optimizer.param_groups, given, strict=True)):
        ids = _checked_group(number, own, group)
        params, left = left[: len(ids)], left[len(ids) :]
        _need(len(params) == len(ids), f"a tensor for every parameter, got {len(tensors)}")
        groups.append((group, params))
        moved.update((param, dict(state.get(id, {}))) for param, id in zip(params, ids, strict=True))
        known.update(ids)
    extra = [key for key in state if key not in known]
    _need(not extra, f"'state' to be of the parameters in 'param_groups', got {extra} besides")
    return groups, moved


def _checked_group(number: int, own: dict[str, Any], group: Any) -> list[int]:
    """The numbers of a group's parameters."""
    _need(isinstance(group, dict), f"group {number} to be a dictionary", group)
    different = sorted(map(str, own.keys() ^ group.keys()))
    _need(
        not different,
        f"group {number} to have the options of the optimizer's, these are in one of them alone: {different}",
    )
    ids = group["params"]
    _need(
        isinstance(ids, list) and all(isinstance(id, int) for id in ids),
        f"'params' of group {number} to be a list of numbers",
        ids,
    )
    _need(len(ids) == len(own["params"]), f"{len(own['params'])} parameters in group {number}, got {len(ids)}")
    return list(ids)


def _need(true: bool, what: str, *got: object) -> None:
    if not true:
        found = "".join(f", got {type(each).__name__}" for each in got)
        raise RuntimeError(f"{_NAME} needs {what}{found}")
