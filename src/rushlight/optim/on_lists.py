"""Steps on lists of tensors: what the functions below PyTorch's optimizers do, as `torch.optim.adam.adam` below `Adam`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.basics.state import Setting
from rushlight.tensor import Tensor

__all__ = ["on_lists", "stepped"]

Tensors = Sequence[Any]

# Two arguments of these functions -> the option of the optimizer that is both of them.
PAIRS = {
    ("beta1", "beta2"): "betas",
    ("etaminus", "etaplus"): "etas",
    ("step_size_min", "step_size_max"): "step_sizes",
}
IDLE = ("foreach", "fused", "capturable", "has_complex", "has_sparse_grad")  # one way of stepping serves all of them
TYPES = dict.fromkeys(("foreach", "fused"), "bool | None") | dict.fromkeys(("grad_scale", "found_inf"), "Tensor | None")
TYPES |= {"lr": "float | Tensor"} | dict.fromkeys(("amsgrad", "centered", "maximize", "nesterov"), "bool")


def on_lists(kind: type[Any], states: str, may: str, must: str, grads: str = "grads") -> Callable[..., None]:
    """The function that does one step of an optimizer on lists of parameters, gradients and states.

    Args:
        kind: the class of the optimizer; the function has its name in small letters.
        states: what the lists of the states are called, such as "exp_avgs state_steps", one for each state.
        may: options with defaults, of which may be given by position too.
        must: options without a default, given by name.
        grads: what the list of the gradients is called.
    """
    name = kind.__name__.lower()
    lists = [_argument(which, "list[Tensor]") for which in ("params", grads, *states.split())]
    optional = [
        _argument(which, "bool", default=None if "None" in TYPES.get(which, "") else False) for which in may.split()
    ]
    needed = [_argument(which, "float").replace(kind=inspect.Parameter.KEYWORD_ONLY) for which in must.split()]
    signature = inspect.Signature([*lists, *optional, *needed], return_annotation="None")

    def step(*args: object, **options: Any) -> None:
        given = _bound(name, signature, args, options)
        kept = {_state(which): given.pop(which) for which in states.split()}
        taken = [given.pop(which, None) for which in ("params", grads, "grad_scale", "found_inf")]
        for two, both in PAIRS.items():
            if two[0] in given:
                given[both] = tuple(given.pop(which) for which in two)
        own = {which: value for which, value in given.items() if which not in IDLE}
        stepped(kind, taken[0], taken[1], kept, *taken[2:], **own)

    step.__name__ = step.__qualname__ = name
    step.__module__ = kind.__module__
    step.__doc__ = (
        f"A step of `{kind.__name__}` on lists: parameters, states and counts are changed in place; a state that is None gets its first "
        "value."
    )
    step.__signature__ = signature  # type: ignore[attr-defined]
    return step


def _argument(name: str, kind: str, **more: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=TYPES.get(name, kind), **more)


def _state(name: str) -> str:
    """What the optimizer calls a state of which there is a list: "step" of "state_steps"."""
    return name.removeprefix("state_").removesuffix("_list").removesuffix("s")


def _bound(name: str, signature: inspect.Signature, args: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a function was called with, by the names of its arguments.  Raises TypeError as Python's functions do."""
    try:
        bound = signature.bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    return bound.arguments


def stepped(kind: type[Any], params: Tensors, grads: Tensors, states: Mapping[str, Any], grad_scale: Any = None, found_inf: Any = None,
            **options: Any) -> None:  # fmt: skip
    """Change parameters, and the lists of their states, as one step of an optimizer of that class does.

    states: for each name of a state one tensor, or None, for each parameter; they are changed in place, and what was None or
    empty gets its first value.  grad_scale: what gradients are divided by; found_inf: whether nothing is to be done.
    """
    if found_inf is not None and bool(found_inf):
        return
    for name, kept in states.items():
        if len(kept) not in (0, len(params)):
            raise ValueError(f"{kind.__name__.lower()}: there are {len(params)} parameters, and {len(kept)} of {name}")
    if not params:
        return
    differentiable = options.get("differentiable", False)
    own = [p if differentiable else p.detach() for p in params]
    optimizer = kind(own, **options)
    for i, (p, grad) in enumerate(zip(own, grads, strict=True)):
        p.grad = grad if grad_scale is None else grad / grad_scale
        found = {name: kept[i] for name, kept in states.items() if len(kept) and kept[i] is not None}
        optimizer.state[p] = found
    optimizer.step()
    for i, p in enumerate(own):
        _kept(states, optimizer.state[p], i)


def _kept(states: Mapping[str, Any], found: Mapping[str, Any], i: int) -> None:
    """Put what a step left into the lists."""
    for name, kept in states.items():
        new = found.get(name)
        if not len(kept) or new is None or new is kept[i]:
            continue
        if isinstance(kept[i], Tensor):
            with Setting("grad", False):
                kept[i].copy_(new)
        else:
            kept[i] = new
