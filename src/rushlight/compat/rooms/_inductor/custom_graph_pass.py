"""``torch._inductor.custom_graph_pass``: of PyTorch's compiler, by name alone."""

from rushlight import absent

__all__: list[str] = []

absent.names(globals(), "nothing is compiled here", "CustomGraphModulePass CustomGraphPass", "")
