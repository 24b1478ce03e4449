"""``torch._functorch.pyfunctorch``: names of PyTorch's interpreters of transformations."""

from rushlight import absent

__all__: list[str] = []
absent.names(
    globals(), "levels of torch.func are no wrappers of tensors here: use torch.func's functions",
    "FuncTorchInterpreter GradInterpreter JvpInterpreter VmapInterpreter",
    "dispatch_functorch retrieve_all_functorch_interpreters retrieve_current_functorch_interpreter "
    "temporarily_clear_interpreter_stack temporarily_pop_interpreter_stack",
)  # fmt: skip
