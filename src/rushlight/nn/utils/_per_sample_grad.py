"""Gradients of a module's parameters by each sample of a batch: ``call_for_per_sample_grads``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.function import Function
from rushlight.basics.tree import Spec
from rushlight.func import functional_call, vmap
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.rnn import RNNBase
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["call_for_per_sample_grads"]


class _ForEach(Function):
    """A parameter once for each sample.  Its gradients go to the parameter's `grad_sample`, and none to the parameter."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, count: int, scale: int) -> Tensor:
        ctx.parameter, ctx.scale = parameter, scale
        return parameter.detach().expand(count, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        g = g * ctx.scale if ctx.scale != 1 else g
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = g if before is None else before + g
        return None, None, None


def call_for_per_sample_grads(module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum",
                              batch_first: bool = True) -> Callable[..., Any]:  # fmt: skip
    """A function that calls the module, and whose backward leaves gradients by sample in its parameters' `grad_sample`.

    batch_size: of the tensors it will be given, by default what they have in dimension 0, or 1 without `batch_first`.
    loss_reduction: "mean" where the loss will be the mean over samples: each sample's gradient is then of its own loss.
    grad_sample: (batch size, *shape of the parameter); `grad` stays as it is.  Each sample is run as a batch of one, all at
    once by `torch.func.vmap`.  Raises RuntimeError for arguments that are none of these, for modules with batch norms,
    whose samples depend on each other, and where a parameter has a `grad_sample` from before.

    >>> import rushlight as torch
    >>> from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> call_for_per_sample_grads(layer)(x).sum().backward()
    >>> layer.weight.grad_sample
    tensor([[[1., 2.]],
    <BLANKLINE>
            [[3., 4.]]])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"call_for_per_sample_grads: Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"call_for_per_sample_grads: Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(
            f"call_for_per_sample_grads: Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"call_for_per_sample_grads: Batch size must be positive, got {batch_size}")
    _check_module(module)
    dim = 0 if batch_first else 1

    def call(*args: object, **kwargs: object) -> Any:
        given, spec = _pytree.tree_flatten((args, kwargs))
        dims = _dims(module, given, dim)
        count = _batch_size(given, dims, batch_size)
        scale = count if loss_reduction == "mean" else 1
        learned = {name: _ForEach.apply(p, count, scale) for name, p in module.named_parameters() if p.requires_grad}
        return _by_sample(module, spec, dims, dim)(learned, given)

    return call


def _check_module(module: Module) -> None:
    """RuntimeError for a module whose samples are no matter of their own, or that was called and backward run before."""
    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None):
            raise RuntimeError(
                f"call_for_per_sample_grads: cannot handle function batch_norm: in {name or 'module'} each sample's result "
                "depends on the others: use a group norm, or eval()"
            )
    for name, p in module.named_parameters():
        if getattr(p, "grad_sample", None) is not None:
            raise RuntimeError(
                f"call_for_per_sample_grads accumulates the gradients, which will be incorrect for multiple calls without clearing "
                f"gradients: {name} has a grad_sample from before, set it to None first"
            )


def _dims(module: Module, given: list[Any], dim: int) -> list[int | None]:
    """The dimension of the batch in each of the arguments, None where it is no tensor: states of RNNs have it second."""
    found: list[int | None] = [dim if isinstance(x, Tensor) and x.ndim > dim else None for x in given]
    if isinstance(module, RNNBase):
        found[1:] = [None if d is None else 1 for d in found[1:]]
    return found


def _batch_size(given: list[Any], dims: list[int | None], told: int | None) -> int:
    """The one size of the batch; RuntimeError where the tensors have several, another than was told, or where none has one."""
    sizes = {x.shape[d] for x, d in zip(given, dims, strict=True) if d is not None}
    if not sizes:
        raise RuntimeError(
            "call_for_per_sample_grads: Unable to find a tensor in the passed args and kwargs: one with a batch is expected at least"
        )
    if len(sizes) > 1 and told is None:
        first, second = sorted(sizes)[:2]
        raise RuntimeError(
            f"call_for_per_sample_grads: When computing batch size, found at least one input with batch size {first} and one with "
            f"batch size {second}: expected tensors of one batch size"
        )
    if len(sizes) > 1 or (told is not None and sizes != {told}):
        raise RuntimeError(
            f"call_for_per_sample_grads: expected tensors of one batch size{'' if told is None else f', {told}'}, got {sorted(sizes)}"
        )
    return int(sizes.pop())


def _by_sample(module: Module, spec: Spec, dims: list[int | None], dim: int) -> Callable[..., Any]:
    """The module for all samples at once, each with parameters of its own."""
    state = 1 if isinstance(module, RNNBase) else dim

    def one(learned: dict[str, Any], given: list[Any]) -> Any:
        whole = [x if d is None else x.unsqueeze(d) for x, d in zip(given, dims, strict=True)]
        args, kwargs = _pytree.tree_unflatten(whole, spec)
        out = functional_call(module, learned, args, kwargs)
        if isinstance(module, RNNBase):
            return out[0].squeeze(dim), _pytree.tree_map(lambda h: h.squeeze(1), out[1])
        return _pytree.tree_map(lambda x: x.squeeze(dim), out)

    out_dims: Any = (dim, state) if isinstance(module, RNNBase) else dim
    return vmap(one, in_dims=(0, dims), out_dims=out_dims, randomness="different")
