"""Transformations of functions, as in `torch.func`."""

from rushlight.func.forward import jvp, linearize
from rushlight.func.functionalizing import functionalize
from rushlight.func.jacobians import hessian, jacfwd, jacrev
from rushlight.func.modules import debug_unwrap, functional_call, replace_all_batch_norm_modules_, stack_module_state
from rushlight.func.rearrange import rearrange
from rushlight.func.reverse import grad, grad_and_value, vjp
from rushlight.func.vmap import vmap

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]  # fmt: skip
