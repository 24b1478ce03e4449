"""``torch._functorch.autograd_function``: names of how PyTorch runs `autograd.Function` within transformations."""

from rushlight import absent

__all__: list[str] = []
absent.names(globals(), "functions of autograd are no operators here: torch.autograd.Function takes transformations as it is",
             "CustomFunctionHigherOrderOperator", "custom_function_call vmapify_autograd_function")  # fmt: skip
