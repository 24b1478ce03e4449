"""``torch._inductor.compile_fx``: of PyTorch's compiler, by name alone."""

from rushlight import absent

__all__: list[str] = []

absent.names(globals(), "nothing is compiled here", "", "compile_fx compile_fx_inner shape_env_from_inputs")
