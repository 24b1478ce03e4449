"""Hooks of all modules by the names of PyTorch's dictionaries, which tests put back by assigning new ones."""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import ModuleType
from typing import Any

from rushlight.nn.base.hooks import shared
from rushlight.nn.base.registry import registration_hooks

__all__ = ["lend"]


def _kept(hooks: Any, *others: Any) -> property:
    """A dictionary of hooks: it is changed in place, and takes the contents of what is assigned; `others` are emptied then."""

    def assign(module: ModuleType, given: Any) -> None:
        items = list(given.items())
        for each in (hooks, *others):
            each.clear()
        hooks.update(items)
        shared.refresh()

    def ask(module: ModuleType) -> Any:
        return OrderedDict(item for each in (hooks, *others) for item in each.items()) if others else hooks

    return property(ask, assign)


def _is_full(module: ModuleType) -> bool | None:
    """Whether hooks of backward are full ones; None where there are none."""
    return True if shared.backward else False if shared.legacy_backward else None


class _Lent(ModuleType):
    """A module with the hooks as attributes."""

    _global_forward_hooks = _kept(shared.forward)
    _global_forward_pre_hooks = _kept(shared.forward_pre)
    _global_forward_hooks_always_called = _kept(shared.always_called)
    _global_forward_hooks_with_kwargs = _kept(shared.with_kwargs)
    _global_backward_hooks = _kept(shared.backward, shared.legacy_backward)
    _global_backward_pre_hooks = _kept(shared.backward_pre)
    _global_is_full_backward_hook = property(_is_full, lambda module, given: None)
    _global_buffer_registration_hooks = _kept(registration_hooks["buffer"])
    _global_module_registration_hooks = _kept(registration_hooks["module"])
    _global_parameter_registration_hooks = _kept(registration_hooks["parameter"])


def lend(name: str) -> None:
    """Let a module, which is being loaded, have the hooks as attributes."""
    sys.modules[name].__class__ = _Lent
