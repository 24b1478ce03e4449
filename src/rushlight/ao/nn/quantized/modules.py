"""``torch.ao.nn.quantized.modules``: of layers on quantized tensors those that compute with ordinary ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.dispatch.named import named
from rushlight.nn.modules.linear import Identity
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.pooling import MaxPool2d
from rushlight.tensor import Tensor

__all__ = ["FXFloatFunctional", "FloatFunctional", "MaxPool2d"]


class FXFloatFunctional(Module):
    """Sums and products as methods of a layer, as quantizable models have them in place of operators.

    >>> import rushlight as torch
    >>> torch.ao.nn.quantized.FloatFunctional().add_relu(torch.tensor([-2.0, 1.0]), 1)
    tensor([0., 2.])
    """

    def forward(self, x: object) -> Any:
        """Raises RuntimeError: its methods are what computes."""
        raise RuntimeError(
            f"{type(self).__name__} is not intended to use the 'forward': call add, mul, cat and its other methods"
        )

    def _seen(self, x: Any) -> Any:
        """What observes results, where something does."""
        return x

    def add(self, x: Tensor, y: Tensor) -> Any:
        """x + y."""
        return self._seen(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Any:
        """x + y; not observed."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Any:
        """x * y."""
        return self._seen(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Any:
        """x * y; not observed."""
        return x * y

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Any:
        """The tensors one behind the other."""
        return self._seen(named.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Any:
        """relu(x + y)."""
        return self._seen((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Any:
        """x @ y."""
        return self._seen(x @ y)


class FloatFunctional(FXFloatFunctional):
    """The same with a module `activation_post_process` that sees the results: an observer, or Identity."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Module = Identity()

    def _seen(self, x: Any) -> Any:
        return self.activation_post_process(x)
