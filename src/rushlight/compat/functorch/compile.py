"""``functorch.compile``: names of what captures and lowers programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import absent

__all__ = ["nop"]
absent.names(
    globals(), "nothing is compiled here, so programs are neither captured nor lowered", "",
    "aot_function aot_module aot_module_simplified compiled_function compiled_module default_decompositions default_partition "
    "draw_graph get_aot_compilation_context get_aot_graph_name get_decompositions get_graph_being_compiled make_boxed_compiler "
    "make_boxed_func memory_efficient_fusion min_cut_rematerialization_partition print_compile ts_compile",
)  # fmt: skip


def nop(fx_g: Callable[..., Any], _: object) -> Callable[..., Any]:
    """The function as it is."""
    return fx_g
