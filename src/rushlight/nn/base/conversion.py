"""``torch.__future__``: whether converting a module gives its parameters other memory, or makes others of them."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_SETTINGS = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions (`module.double()`) put new parameters in the place of the old ones, which stay as they were."""
    _SETTINGS["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` has set; False at first."""
    return _SETTINGS["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` make a new parameter and exchange it with the old one by
    `torch.utils.swap_tensors`, which keeps the object and all that belongs to its class."""
    _SETTINGS["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` has set; False at first."""
    return _SETTINGS["swap"]
