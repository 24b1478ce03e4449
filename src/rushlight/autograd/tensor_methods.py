"""The methods of tensors that belong to autograd: hooks and retained gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.engine.accumulate import post_hook
from rushlight.engine.hooks import retain_grad, tensor_hook
from rushlight.tensor import LEAF, Tensor


def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(grad)` whenever a gradient of this tensor is computed; a tensor that it returns replaces the gradient.

    Returns a handle with `remove()`.

    >>> import rushlight as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 2)
    >>> x.backward(torch.tensor([1.0]))
    >>> x.grad
    tensor([2.])
    """
    return tensor_hook(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was accumulated into this leaf's `.grad`.  Returns a handle."""
    return post_hook(self, hook)


def retains_grad(self: Tensor) -> bool:
    """Whether this non-leaf keeps its gradient."""
    # The edge as it is: of a view whose history is lost, asking for another one would be refused.
    return bool(self._retains) and self._edge is not None and self._edge is not LEAF


def backward_hooks(self: Tensor) -> dict[int, Callable[..., Any]] | None:
    """The hooks of the gradient by their handles' numbers, or None where there are none; a dictionary that was put here."""
    given: dict[int, Callable[..., Any]] | None = self.__dict__.get("_backward_hooks")
    edge = self._edge
    if given is not None or edge is None:
        return given
    if edge is LEAF or isinstance(edge, Tensor):
        return self._hooks or None
    extra = edge.node.extra
    return extra.tensor_hooks.get(self.output_nr) if extra is not None else None


def put_backward_hooks(self: Tensor, hooks: dict[int, Callable[..., Any]] | None) -> None:
    """Make the hooks in a dictionary those of the gradient: it is kept, for `grad_fn._register_hook_dict` to read."""
    self.__dict__["_backward_hooks"] = hooks
    edge = self._edge
    if edge is LEAF:
        self._hooks = Hooks(hooks) if hooks else None
    elif hooks and edge is not None and not isinstance(edge, Tensor):
        edge.node.extras().tensor_hooks[self.output_nr] = Hooks(hooks)


def post_accumulate_grad_hooks(self: Tensor) -> dict[int, Callable[..., Any]] | None:
    """The hooks that run after a gradient was accumulated, by their handles' numbers, or None where there are none."""
    return self._post_hooks or None


def keep_graph(self: Tensor) -> None:
    """Raise RuntimeError: a place in the graph is not to be deleted."""
    raise RuntimeError("_grad_fn cannot be deleted: detach_() takes a tensor out of its graph")


def keep_hooks(self: Tensor) -> None:
    """Raise RuntimeError: hooks are removed by their handles."""
    raise RuntimeError(
        "_backward_hooks cannot be deleted: remove() of the handle that register_hook gave removes a hook"
    )


Tensor._grad_fn = property(lambda self: self.grad_fn, None, keep_graph)  # type: ignore[attr-defined]
Tensor._backward_hooks = property(backward_hooks, put_backward_hooks, keep_hooks)
Tensor._post_accumulate_grad_hooks = property(post_accumulate_grad_hooks)  # type: ignore[attr-defined]
Tensor.register_hook = register_hook  # type: ignore[assignment, method-assign]
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook  # type: ignore[assignment, method-assign]
Tensor.retain_grad = retain_grad  # type: ignore[assignment, method-assign]
Tensor.retains_grad = property(retains_grad)  # type: ignore[assignment, method-assign]
