"""PyTorch's autograd interface on the engine."""

from __future__ import annotations

from rushlight.autograd import anomaly_mode, forward_ad, function, graph
from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight.autograd.function import Function
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.autograd.run import _calculate_shape as _calculate_shape
from rushlight.autograd.run import backward, grad
from rushlight.autograd.variable import Variable
from rushlight.basics.lazily import lazily
from rushlight.basics.state import modes
from rushlight.engine.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight.engine.saved import SavedTensor

__all__ = ["Function", "SavedTensor", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad",
           "forward_ad", "function", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad",
           "set_detect_anomaly", "set_grad_enabled"]  # fmt: skip

# What is loaded when it is first asked for.
_ROOMS = [f"{__name__}.{name}" for name in ("_functions", "functional", "grad_mode", "profiler", "profiler_util")]
_LAZY = dict.fromkeys(("set_multithreading_enabled", "is_multithreading_enabled", "enforce_grad_layout_policy",
                        "_force_original_view_tracking", "_unsafe_preserve_version_counter"),
                       "rushlight.autograd.grad_mode")  # fmt: skip
_LAZY |= dict.fromkeys(("_disable_profiler", "_profiler_enabled"), "rushlight.autograd.profiler.session")
_LAZY |= dict.fromkeys(("DeviceType", "kineto_available"), "rushlight.autograd.profiler")


def _is_checkpoint_valid() -> bool:
    """Whether a part that is computed again may run its own backward: not where gradients of given inputs are asked for."""
    return modes.run is None or modes.run.targets is None


__getattr__ = lazily(__name__, _ROOMS, _LAZY)
