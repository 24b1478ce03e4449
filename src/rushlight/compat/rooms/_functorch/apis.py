"""``torch._functorch.apis``: `torch.func`'s own functions, and vmap in chunks."""

from rushlight.compat.functorch.experimental import chunk_vmap
from rushlight.func import grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
