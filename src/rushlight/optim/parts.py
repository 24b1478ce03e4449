"""What optimizers of others take from ``torch.optim.optimizer`` beside `Optimizer`: small functions, and texts for docstrings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.state import Setting
from rushlight.dispatch.named import named as torch
from rushlight.tensor import Tensor

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
