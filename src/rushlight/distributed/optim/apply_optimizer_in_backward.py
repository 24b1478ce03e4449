"""Optimizers fired by the backward pass, one for each parameter, as soon as its gradient is accumulated.

Nothing here lengthens a parameter's life, and no reference cycle is left for the cycle collector: the two maps know
their parameters weakly and hold no value that refers to them, the hook knows its parameter weakly, and so do the
optimizers, which belong to the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.engine.node import accumulator
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.weak_params import hold_weakly
from rushlight.utils.weak import WeakIdRef, WeakTensorKeyDictionary

if TYPE_CHECKING:
    from rushlight.engine.node import AccumulateGrad
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

__all__: list[str] = []


class _AccumulatorMap(WeakTensorKeyDictionary):
    """From a parameter to its AccumulateGrad node.

    The node refers to the parameter, so a stored node would keep its own key alive: the map remembers only which
    parameters it knows, and asks the graph for the node, whose hooks live on the parameter.
    """

    def __getitem__(self, key: Tensor) -> Any:
        super().__getitem__(key)
        return _accumulate_grad(key)

    def __setitem__(self, key: Tensor, value: AccumulateGrad) -> None:
        super().__setitem__(key, None)

    def items(self) -> Any:
        """Pairs of parameter and node."""
        return [(param, self[param]) for param in self]


param_to_optim_hook_handle_map = WeakTensorKeyDictionary()
param_to_acc_grad_map = _AccumulatorMap()


def _accumulate_grad(param: Tensor) -> AccumulateGrad:
    """The node at which gradients of the leaf `param` gather.  Raises ValueError unless it is a leaf that needs one."""
    if not param.requires_grad or not param.is_leaf:
        raise ValueError(
            "_apply_optimizer_in_backward expects parameters that are leaves and require grad, but got a tensor of "
            f"shape {tuple(param.shape)} with requires_grad={param.requires_grad} and is_leaf={param.is_leaf}"
        )
    return accumulator(param)


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Any],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Give every parameter an optimizer of its own that steps during `backward()`.

    When the gradient of a parameter has been accumulated, all its in-backward optimizers step in the order in which
    they were applied, and its `.grad` becomes None: any other optimizer over this parameter does nothing.

    Args:
        optimizer_class: called as `optimizer_class([param], **optimizer_kwargs)` for each parameter.
        params: the parameters, leaves that require grad; one that occurs twice gets two optimizers.
        optimizer_kwargs: keyword arguments of the optimizer.
        register_hook: False makes the optimizers without having backward fire them.

    Each parameter then has the attributes `_in_backward_optimizers`, `_optimizer_classes` and `_optimizer_kwargs`:
    lists with one entry for each optimizer.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributed.optim import _apply_optimizer_in_backward
        >>> layer = torch.nn.Linear(2, 1)
        >>> _apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 0.1})
        >>> layer(torch.ones(1, 2)).sum().backward()  # steps both parameters
        >>> layer.weight.grad is None
        True
    """
    for param in params:
        _apply_to_param(optimizer_class, param, optimizer_kwargs, register_hook)


def _apply_to_param(optimizer_class: Any, param: Any, kwargs: dict[str, Any], register_hook: bool) -> None:
    if param not in param_to_acc_grad_map:
        param_to_acc_grad_map[param] = _accumulate_grad(param)
    optimizer = optimizer_class([param], **kwargs)
    hold_weakly(optimizer)
    if not hasattr(param, "_in_backward_optimizers"):
        param._in_backward_optimizers, param._optimizer_classes, param._optimizer_kwargs = [], [], []
    param._in_backward_optimizers.append(optimizer)
    param._optimizer_classes.append(optimizer_class)
    param._optimizer_kwargs.append(kwargs)
    if register_hook:
        handle = param_to_acc_grad_map[param].register_hook(_optimizer_hook(param))
        param_to_optim_hook_handle_map.setdefault(param, []).append(handle)


def _optimizer_hook(param: Tensor) -> Callable[..., None]:
    """A hook that steps all in-backward optimizers of `param` and drops its gradient."""
    ref = WeakIdRef(param)

    def optimizer_hook(*_unused: object) -> None:
        param = ref()
        if param is None:
            return
        for optimizer in param._in_backward_optimizers:
            optimizer.step()
        param.grad = None

    return optimizer_hook


def _in_backward_optimizers(module: Module) -> Iterator[Optimizer]:
    for param in module.parameters():
        yield from getattr(param, "_in_backward_optimizers", [])


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """The in-backward optimizers of the parameters of `module`, in the order of `module.parameters()`.

    They are there to be inspected, scheduled and checkpointed; backward calls their `step`.
    """
    return list(_in_backward_optimizers(module))
