"""PyTorch's autograd interface on the engine."""

from rushlight.autograd.run import backward, grad
from rushlight.engine.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
