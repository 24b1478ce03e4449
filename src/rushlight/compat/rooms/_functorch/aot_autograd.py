"""``torch._functorch.aot_autograd``: names of what captures programs with their gradients."""

from rushlight import absent

__all__: list[str] = []
absent.names(globals(), "nothing is compiled here, so programs are neither captured nor lowered", "",
             "aot_export_joint_simple aot_export_module aot_function aot_module aot_module_simplified")  # fmt: skip
