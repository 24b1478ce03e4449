"""Weight normalisation by a forward pre-hook.  `parametrizations.weight_norm` does the same by a parametrization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dispatch.dims import wrap_dim
from rushlight.nn.parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The 2-norm of `v` over all dimensions but `dim`, which keep size 1; over all for None or -1."""
    if dim is None or dim == -1:
        return v.norm()
    kept = wrap_dim(dim, v.ndim)
    others = [d for d in range(v.ndim) if d != kept]
    return (v * v).sum(others, keepdim=True).sqrt() if others else v.abs()


def normalised(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """`g * v / |v|`, the norm over all dimensions but `dim`."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook: computes the weight from its magnitude `name_g` and its direction `name_v`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """`g * v / |v|`."""
        return normalised(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split the weight `name` of `module` and register the hook."""
        for hook in module._hooks_of("_forward_pre_hooks"):
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Put the weight back as one parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: tuple[Tensor, ...]) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a weight by its magnitude (`name_g`, one for each index of `dim`) and its direction (`name_v`).

    Source: Salimans and Kingma, Weight Normalization (2016).
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Undo `weight_norm`.  Raises ValueError where there is none."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
