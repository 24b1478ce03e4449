"""``torch.utils.module_tracker``: which modules run, in forward and in backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.basics import tree
from rushlight.basics.state import modes
from rushlight.engine.run import queue_callback
from rushlight.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from rushlight.tensor import Tensor

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Within the block, knows by name the modules that run, in this thread.

    Attributes: `parents`, the names of all modules around what runs now, and "Global"; `is_bw`, whether backward runs.  A
    module's name begins with the class of the outermost one that was called.  In backward a module lasts from the gradient of
    its result to those of its arguments, or to the end where none of them requires grad.

    >>> import rushlight as torch
    >>> net, seen = torch.nn.Sequential(torch.nn.ReLU()), []
    >>> handle = net[0].register_forward_pre_hook(lambda *args: seen.append(sorted(tracker.parents)))
    >>> with ModuleTracker() as tracker:
    ...     _ = net(torch.ones(1))
    >>> seen
    [['Global', 'Sequential', 'Sequential.0']]
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._queued = False

    @property
    def is_bw(self) -> bool:
        """Whether backward runs."""
        return modes.run is not None

    def _name(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            last = {m: f"{root}.{path}" if path else root for path, m in module.named_modules(remove_duplicate=False)}
            for each, name in last.items():
                self._names.setdefault(each, name)
        return self._names[module]

    def _in_backward(self, tensors: list[Tensor], change: Callable[[], None]) -> None:
        """Call this when the gradients of these tensors have come."""
        wanted = [t for t in tensors if t.requires_grad]
        if wanted:
            register_multi_grad_hook(wanted, lambda gradients: change())

    def _enter(self, module: Module, args: tuple[Any, ...]) -> None:
        name = self._name(module)
        self.parents.add(name)
        if modes.grad:
            self._in_backward(_tensors(args), lambda: self.parents.discard(name))

    def _leave(self, module: Module, args: tuple[Any, ...], output: object) -> None:
        name = self._name(module)
        self.parents.discard(name)
        if modes.grad:
            self._in_backward(_tensors(output), lambda: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        if not self._queued:
            queue_callback(self._end)
            self._queued = True
        self.parents.add(name)

    def _end(self) -> None:
        self.parents, self._queued = {"Global"}, False

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()


def _tensors(given: object) -> list[Tensor]:
    return [x for x in tree.tree_flatten(given)[0] if isinstance(x, Tensor)]
