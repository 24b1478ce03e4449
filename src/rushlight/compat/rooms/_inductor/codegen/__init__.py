"""``torch._inductor.codegen``: of PyTorch's compiler, by name alone."""
