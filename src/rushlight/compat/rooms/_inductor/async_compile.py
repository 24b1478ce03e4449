"""``torch._inductor.async_compile``: of PyTorch's compiler, by name alone."""

from rushlight import absent

__all__: list[str] = []

absent.names(globals(), "nothing is compiled here", "AsyncCompile", "shutdown_compile_workers")
