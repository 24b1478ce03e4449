"""What optimizers of others take from ``torch.optim.optimizer`` beside `Optimizer`: small functions, and texts for docstrings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.naming import called
from rushlight.basics.state import Setting
from rushlight.dispatch.named import named as torch
from rushlight.tensor import Tensor

__all__ = ["on_lists", "stepped"]

_params_doc = "params: parameters, dicts of groups of them, or pairs of a name and a parameter."
_foreach_doc = "foreach: whether all parameters are stepped at once."
_fused_doc = "fused: whether one kernel does a step."
_capturable_doc = "capturable: whether a step may be part of a CUDA graph; there are none here."
_differentiable_doc = "differentiable: whether steps are part of the graph."
_maximize_doc = "maximize: whether the objective is to grow."


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `step`: the graph grows in it where the optimizer's default `differentiable` says so, else not."""

    @functools.wraps(step)
    def outer(self: Any, *args: object, **kwargs: object) -> Any:
        with Setting("grad", bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return outer


def _disable_dynamo_if_unsupported(single_tensor_fn: object = None) -> Callable[[Any], Any]:
    """A decorator that gives the function as it is: nothing is compiled."""
    return lambda function: function


def _default_to_fused_or_foreach(params: object, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether to step fused, or all at once, where the user does not say: neither, as on PyTorch's CPU."""
    return False, False


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices on which PyTorch steps all parameters at once where nobody says how: the CPU is none of them."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices on which optimizers step by fused kernels."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices with graphs of kernels: the CPU is none of them."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """The tensors of several lists of one length, by the device and the dtype of those of the first.

    Gives {(device, dtype): (lists, places)}: the same lists with the tensors of that kind alone, and where they stood
    (nowhere, without `with_indices`).  None may stand in the later lists.  RuntimeError for lists of unequal length.
    """
    first = tensorlistlist[0]
    if any(len(others) not in (0, len(first)) for others in tensorlistlist):
        raise RuntimeError(
            f"_group_tensors_by_device_and_dtype: expected lists of one length, got {[len(n) for n in tensorlistlist]}"
        )
    found: dict[Any, Any] = {}
    for i, x in enumerate(first):
        lists, places = found.setdefault((x.device, x.dtype), ([[] for _ in tensorlistlist], []))
        for kept, given in zip(lists, tensorlistlist, strict=True):
            kept.extend(given[i : i + 1])
        if with_indices:
            places.append(i)
    return found


def _get_scalar_dtype(is_fused: bool | None = None) -> dtypes.dtype:
    """The dtype of counters of steps: float64 where that is the default and no kernel is fused, else float32."""
    wide = not is_fused and dtypes.get_default_dtype() is dtypes.float64
    return dtypes.float64 if wide else dtypes.float32


def _get_value(x: object) -> object:
    """The number in a tensor of one, or the number itself."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: object) -> object:
    """A tensor of one without its dimensions, or the number itself."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _stack_if_compiling(x: object) -> object:
    """`x` itself: nothing is compiled."""
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex tensors by views of their real and imaginary parts, in each of the lists, in place."""
    for i, param in enumerate(params):
        if param.is_complex():
            for given in (params, *state_and_grads):
                given[i] = torch.view_as_real(given[i])


# Steps on lists of tensors: what the functions below PyTorch's optimizers do, as `torch.optim.adam.adam` below `Adam`.

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

    said = (
        f"A step of `{kind.__name__}` on lists: parameters, states and counts are changed in place; a state that is None gets its first "
        "value."
    )
    step.__signature__ = signature  # type: ignore[attr-defined]
    return called(step, name, said, kind.__module__)


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


def stepped(
    kind: type[Any],
    params: Tensors,
    grads: Tensors,
    states: Mapping[str, Any],
    grad_scale: Any = None,
    found_inf: Any = None,
    **options: Any,
) -> None:
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
