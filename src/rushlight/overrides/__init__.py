"""``torch.overrides``: classes that say themselves what functions do with their objects, by ``__torch_function__``."""

from rushlight.overrides.listing import (
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_tensor_method_or_property,
    resolve_name,
)
from rushlight.overrides.modes import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    _get_current_function_mode,
    _get_current_function_mode_stack,
    _pop_mode,
    _pop_mode_temporarily,
    _push_mode,
    enable_reentrant_dispatch,
)
from rushlight.overrides.questions import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    redispatch_function,
    wrap_torch_function,
)

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "_get_current_function_mode",
           "_get_current_function_mode_stack", "_pop_mode", "_pop_mode_temporarily", "_push_mode",
           "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]  # fmt: skip
