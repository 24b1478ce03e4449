"""``torch._C._functions``: nodes that Python makes by themselves."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.function import Function
from rushlight.engine.node import AccumulateGrad as AccumulateGrad
from rushlight.tensor import Tensor


class Through(Function):
    """Passes tensors through; what becomes of their gradients is its argument's to say."""

    @staticmethod
    def forward(ctx: Any, backward: Any, *inputs: Any) -> Any:
        ctx.back = backward
        ctx.set_materialize_grads(False)
        outputs = tuple([x.view_as(x) if isinstance(x, Tensor) else x for x in inputs])
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.back(grads))


class UndefinedGrad:
    """Called with tensors, gives them back; no gradient comes through.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch._C._functions.UndefinedGrad()(x * 2).sum().backward()
    >>> x.grad is None
    True
    """

    def __call__(self, *inputs: Any) -> Any:
        return Through.apply(lambda grads: [None] * len(grads), *inputs)


class DelayedError:
    """Called with tensors, gives them back; a gradient that comes to them raises RuntimeError.

    msg: of the error; num_inputs: how many tensors there will be.
    """

    def __init__(self, msg: str, num_inputs: int):
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *inputs: Any) -> Any:
        def fail(grads: object) -> Any:
            raise RuntimeError(self.msg)

        return Through.apply(fail, *inputs)
