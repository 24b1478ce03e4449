"""``functorch``: the older name of `torch.func`, with models as functions of their parameters."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from rushlight import absent
from rushlight.compat.torch_version import PYTORCH
from rushlight.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
           "vjp", "vmap"]  # fmt: skip

__version__ = PYTORCH[:]
absent.names(globals(), "nothing is compiled here, so programs are neither captured nor lowered", "", "make_fx")


class FunctionalModuleWithBuffers:
    """A module as a function: `f(params, buffers, *args)`.  It has weights of its own on the device meta alone."""

    def __init__(self, model: Any):
        self.stateless_model = copy.deepcopy(model).to("meta")
        self.names = [name for name, _ in model.named_parameters()]
        self.buffers = [name for name, _ in model.named_buffers()]

    def __call__(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters and buffers; changes of buffers go to those that were given."""
        given = dict(zip((*self.names, *self.buffers), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function: `f(params, *args)`."""

    def __call__(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        return super().__call__(params, (), *args, **kwargs)


def _parameters(model: Module, disable_autograd_tracking: bool) -> tuple[Any, ...]:
    """Copies of a module's parameters."""
    copied = tuple(copy.deepcopy(model).parameters())
    for p in copied if disable_autograd_tracking else ():
        p.requires_grad_(False)
    return copied


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """A module without buffers as a function of its parameters, and copies of these.  Raises RuntimeError if it has buffers.

    >>> import rushlight as torch
    >>> from rushlight.compat.functorch import make_functional
    >>> f, params = make_functional(torch.nn.Linear(2, 1))
    >>> f(params, torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): expected a model without buffers: use make_functional_with_buffers(model)"
        )
    return FunctionalModule(model), _parameters(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A module as a function of its parameters and buffers, and copies of both."""
    buffers = tuple(copy.deepcopy(b) for b in model.buffers())
    return FunctionalModuleWithBuffers(model), _parameters(model, disable_autograd_tracking), buffers


def combine_state_for_ensemble(models: Any) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A module of many as a function, and their parameters and buffers stacked, for `vmap` over dimension 0.

    Raises RuntimeError for no models, or models of several classes or modes.
    """
    params, buffers = stack_module_state(models)
    return FunctionalModuleWithBuffers(models[0]), tuple(params.values()), tuple(buffers.values())
