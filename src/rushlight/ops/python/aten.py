"""`torch.ops.aten`: operators under the names by which selective checkpointing and other policies know them."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.declare import OPS

# PyTorch's names of operators that are called something else here.
ALIASES = {
    "convolution": "conv_op",
    "max_pool2d_with_indices": "max_pool_op",
    "max_pool3d_with_indices": "max_pool_op",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_scaled_dot_product_attention_math": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
}


class Overloads:
    """An operator by name; every overload of it is the operator itself."""

    def __init__(self, name: str):
        self.name, self.op = name, OPS[name]

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self.op

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def __getattr__(name: str) -> Any:
    name = ALIASES.get(name, name)
    if name not in OPS:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute {name!r}")
    return Overloads(name)
