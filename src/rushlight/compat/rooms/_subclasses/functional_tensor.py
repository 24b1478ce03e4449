"""``torch._subclasses.functional_tensor``: tensors that PyTorch's compiler takes changes in place out of programs with."""

from rushlight import absent

__all__: list[str] = []
absent.names(globals(), "nothing is captured here: torch.func.functionalize runs a function without changes of its arguments",
             "BaseFunctionalizeAPI CppFunctionalizeAPI FunctionalTensor FunctionalTensorMode PythonFunctionalizeAPI",
             "dispatch_functionalize disable_functional_mode")  # fmt: skip
