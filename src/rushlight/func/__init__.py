"""Transformations of functions, as in `torch.func`."""

from __future__ import annotations

from rushlight.func.forward import jvp, linearize
from rushlight.func.jacobians import hessian, jacfwd, jacrev
from rushlight.func.modules import functional_call, stack_module_state
from rushlight.func.reverse import grad, grad_and_value, vjp
from rushlight.func.vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "stack_module_state", "vjp", "vmap"]  # fmt: skip
