"""What optimizers of others take from ``torch.optim.optimizer`` beside `Optimizer`: small functions, and texts for docstrings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.state import Setting
from rushlight.dispatch.named import named as torch
from rushlight.tensor import Tensor

__all__: list[str] = []

_params_doc = "params: parameters, dicts of groups of them, or pairs of a name and a parameter."
_foreach_doc = "foreach: whether all parameters are stepped at once."
_fused_doc = "fused: whether one kernel does a step."
_capturable_doc = "capturable: whether a step may be part of a CUDA graph; there are none here."
_differentiable_doc = "differentiable: whether steps are part of the graph."
_maximize_doc = "maximize: whether the objective is to grow."


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `step`: the graph grows in it where the optimizer's default `differentiable` says so, else not."""

    @functools.wraps(step)
    def outer(self: Any, *args: Any, **kwargs: Any) -> Any:
        with Setting("grad", bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return outer


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that gives the function as it is: nothing is compiled."""
    return lambda function: function


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether to step fused, or all at once, where the user does not say: neither, as on PyTorch's CPU."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices with graphs of kernels: the CPU is none of them."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_scalar_dtype(is_fused: bool | None = None) -> dtypes.dtype:
    """The dtype of counters of steps: float64 where that is the default and no kernel is fused, else float32."""
    wide = not is_fused and dtypes.get_default_dtype() is dtypes.float64
    return dtypes.float64 if wide else dtypes.float32


def _get_value(x: Any) -> Any:
    """The number in a tensor of one, or the number itself."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one without its dimensions, or the number itself."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _stack_if_compiling(x: Any) -> Any:
    """`x` itself: nothing is compiled."""
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex tensors by views of their real and imaginary parts, in each of the lists, in place."""
    for i, param in enumerate(params):
        if param.is_complex():
            for given in (params, *state_and_grads):
                given[i] = torch.view_as_real(given[i])
