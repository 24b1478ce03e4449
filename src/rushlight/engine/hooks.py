"""Hooks around a node, in PyTorch's order: tensor hooks, retained gradients, pre-hooks, the node, post-hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.basics.handles import Hooks
from rushlight.engine.accumulate import check_hook_result, checked, note_hook
from rushlight.engine.conform import Grads, conform_array, conform_tensor
from rushlight.engine.node import Lost, Node
from rushlight.overrides.protocol import users
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.handles import RemovableHandle
    from rushlight.engine.run import Run


def lift(run: Run, g: Any) -> Tensor | None:
    """A gradient as hooks see it: a tensor, or None."""
    return g if g is None or run.create else wrap(g)


def lower(run: Run, g: Tensor | None) -> Array | Tensor | None:
    """A gradient as the run passes it on."""
    return g if g is None or run.create else g._array


def tensor_hooks(run: Run, node: Node, g: Array | Tensor | list[Any]) -> Grads:
    """The gradients of the outputs after the hooks of tensors; those that tensors retain are kept."""
    extra = node.extra
    if extra is None or not (extra.tensor_hooks or extra.retained):
        return g
    grads = [lift(run, x) for x in (g if node.count != 1 else [g])]
    for nr, hooks in list(extra.tensor_hooks.items()):
        for hook in tuple(hooks.values()):
            if grads[nr] is not None or getattr(hook, "counts_none", False):
                result = call_hook(hook, node, f"the gradient of output {nr} of", grads[nr])
                if result is not None:
                    grads[nr] = check_hook_result(result, grads[nr], hook)
    for nr, ref in extra.retained.items() if not run.dry else ():
        retain(ref(), grads[nr])
    return lowered(run, node, grads)


def pre_hooks(run: Run, node: Node, g: Any) -> Grads:
    """The gradients of the outputs after the pre-hooks of the node."""
    extra = node.extra
    if extra is None or not extra.pre_hooks:
        given: Grads = g
        return given
    grads = [lift(run, x) for x in (g if node.count != 1 else [g])]
    for hook in tuple(extra.pre_hooks.values()):
        result = call_hook(hook, node, "the pre-hook of", tuple(grads))
        if result is not None:
            grads = checked(result, grads, hook)
    return lowered(run, node, grads)


def lowered(run: Run, node: Node, grads: list[Any]) -> Grads:
    """The gradients of a node's outputs as the run passes them on."""
    found = [lower(run, x) for x in grads]
    return found if node.count != 1 else found[0]


def retain(tensor: Tensor | None, g: Tensor) -> None:
    """Keep a copy of the gradient of a tensor that asked for it."""
    if tensor is None or g is None:
        return
    batched = getattr(g._held, "interpreted", False)
    if batched and not getattr(tensor._held, "interpreted", False):
        return  # one gradient for each sample of a batch, and a tensor of none
    g = g.clone() if g._edge is not None or batched or g._meta or g._tangents else wrap(g._array.copy())
    tensor._grad = g if tensor._grad is None else tensor._grad + g


def call_hook(hook: Callable[..., Any], node: Node, what: str, *args: object) -> Any:
    """The result of a hook; an error in it is told which node it ran for."""
    try:
        return users(hook, *args)
    except Exception as error:
        note_hook(error, hook, f"{what} {node.name()}", node)
        raise


def after_node(run: Run, node: Node, grads: list[Any], g: Any) -> list[Any]:
    """The gradients of the inputs after post-hooks, which see them as they arrive: in shape and dtype of the inputs."""
    extra = node.extra
    if extra is None or not extra.post_hooks:
        return grads
    outer = tuple(lift(run, x) for x in (g if node.count != 1 else [g]))
    inner = (
        [None] * len(node.edges)
        if grads is None
        else [lift(run, arriving(run, *pair)) for pair in zip(grads, node.edges, strict=True)]
    )
    shown = node.shown(inner)
    for hook in tuple(extra.post_hooks.values()):
        result = call_hook(hook, node, "the hook of", tuple(shown), outer)
        if result is not None:
            shown = checked(result, shown, hook)
    for i, x in zip(node.input_places() or range(len(inner)), shown, strict=True):
        inner[i] = x
    return [lower(run, x) for x in inner]


def arriving(run: Run, g: Any, edge: Any) -> Any:
    """The gradient that goes along an edge as what it leads to takes it."""
    if g is None or edge is None:
        return g
    like = edge._array if isinstance(edge, Tensor) else edge
    return (conform_tensor if run.create else conform_array)(g, edge, like.shape, like.dtype)


def tensor_hook(tensor: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(grad)` on a tensor: on a leaf for what is accumulated, else on the node that computed it."""
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    fn = arriving_at(tensor)
    if fn is None:
        return tensor._add_hook("_hooks", hook)

    hooks = fn.extras().tensor_hooks.setdefault(tensor.output_nr, Hooks())
    return hooks.add(hook)


def arriving_at(tensor: Tensor) -> Node | None:
    """The node to which gradients of a tensor come: its `grad_fn`, or what ends the lost history of a view."""
    fn: Node | None = tensor.grad_fn
    lost = tensor._edge if fn is None else None
    return lost if isinstance(lost, Lost) else fn


def retain_grad(tensor: Tensor) -> None:
    """Have backward put this non-leaf's gradient into its `.grad`; nothing to do for leaves."""
    if not tensor.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if tensor._unrecorded():
        return  # a leaf
    fn = arriving_at(tensor)
    if fn is not None:
        tensor._retains = True
        fn.extras().retained[tensor.output_nr] = tensor._weak()
