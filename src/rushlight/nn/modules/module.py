"""Module: the base class of all neural network modules."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from rushlight.basics.signatures import name_init
from rushlight.dispatch.registry import is_public
from rushlight.nn.base import global_hooks
from rushlight.nn.base.hooks import (
    Hooked,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from rushlight.nn.base.registry import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.nn.base.state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from rushlight.nn.base.state import _IncompatibleKeys

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


global_hooks.lend(__name__)


def _addindent(text: str, spaces: int) -> str:
    """Indent every line of `text` but the first."""
    return text.replace("\n", "\n" + spaces * " ")


class Module(Hooked):
    """Base class of all modules: parameters, buffers and child modules become found by being assigned.

    A subclass calls `super().__init__()` first, assigns its parts, and overrides `forward`.  A module is called, so
    that its hooks run.  Its parts: `registry` (attributes), `tree` (names, walking), `convert` (dtypes and devices),
    `state` (state_dict), `hooks` (calls).

    >>> import rushlight as torch
    >>> class Twice(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = torch.nn.Linear(3, 3)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> Twice()
    Twice(
      (inner): Linear(in_features=3, out_features=3, bias=True)
    )
    """

    _compiled_call_impl: Any = None  # what `compile` sets

    def __init_subclass__(cls, **options: object) -> None:
        """Have operators as attributes of a class stay functions: PyTorch's are of compiled code, which no class makes methods."""
        super().__init_subclass__(**options)
        name_init(cls)
        if not cls.__module__.startswith("rushlight."):
            for name, value in [*vars(cls).items()]:
                if isinstance(value, FunctionType) and is_public(value):
                    setattr(cls, name, staticmethod(value))

    def extra_repr(self) -> str:
        """What `repr` shows of this module beside its children; override."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(child), 2)}" for name, child in self._modules.items()]
        return _layout(self._get_name(), lines, children)

    def compile(self, *args: object, **kwargs: object) -> None:
        """Note that the module is to be compiled, in `_compiled_call_impl`: there is nothing to compile to."""
        self._compiled_call_impl = Hooked._call_impl


def _layout(name: str, lines: list[str], children: list[str]) -> str:
    """A module's repr from its own lines and its children's."""
    if not lines and not children:
        return f"{name}()"
    if len(lines) == 1 and not children:
        return f"{name}({lines[0]})"
    return name + "(\n  " + "\n  ".join([*lines, *children]) + "\n)"
