"""``torch._functorch.functional_call``: modules called with other parameters."""

from rushlight.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
