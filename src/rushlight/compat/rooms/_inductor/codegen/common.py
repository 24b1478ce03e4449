"""``torch._inductor.codegen.common``: of PyTorch's compiler, by name alone."""

from rushlight import absent

__all__: list[str] = []

absent.names(
    globals(),
    "nothing is compiled here",
    "",
    "get_custom_backend_config_for_device get_custom_backend_pass_for_device get_scheduling_for_device get_wrapper_codegen_for_device init_backend_registration register_backend_for_device",
)
