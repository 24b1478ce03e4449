"""Spectral normalisation by a forward pre-hook.  `parametrizations.spectral_norm` does it by a parametrization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.nn import functional as F
from rushlight.nn._linalg import linalg
from rushlight.nn.parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def default_dim(module: Module) -> int:
    """The dimension of outputs in the weight of `module`: 1 for transposed convolutions, else 0."""
    from rushlight.nn.modules.conv import _ConvTransposeNd

    return 1 if isinstance(module, _ConvTransposeNd) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with `dim` first and the rest flattened."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.ndim) if d != dim))
    return weight.reshape(weight.shape[0], -1)


def iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Power iteration in place: u and v approach the singular vectors of the largest singular value."""
    with no_grad():
        for _ in range(times):
            v.copy_(F.normalize(ops.mv(matrix.t(), u), dim=0, eps=eps))
            u.copy_(F.normalize(ops.mv(matrix, v), dim=0, eps=eps))


def right_vector(matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
    """The v of least squares in u = matrix @ v, of the length with which u @ matrix @ v is sigma."""
    v = ops.mv(linalg("pinv")(matrix), u)
    return v * (sigma / ops.dot(u, ops.mv(matrix, v)))


class SpectralNorm:
    """The hook: divides the weight by its largest singular value, followed by power iteration."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            iterate(matrix, u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # the graph of this call outlives the next iteration
        return weight / ops.dot(u, ops.mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace the weight `name` of `module` and register the hook."""
        for hook in module._hooks_of("_forward_pre_hooks"):
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            matrix = as_matrix(weight, dim)
            u = F.normalize(weight.new_empty(matrix.shape[0]).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(matrix.shape[1]).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(hook.write_version)
        module._register_load_state_dict_pre_hook(hook.complete)
        return hook

    def write_version(self, module: Module, state: object, prefix: str, metadata: dict[str, Any]) -> None:
        """Note in the metadata of a state_dict that it has both vectors, which the first files lacked."""
        metadata.setdefault("spectral_norm", {})[f"{self.name}.version"] = 1

    def noted(self, metadata: dict[str, Any]) -> bool:
        """Whether a state_dict with this metadata has both vectors."""
        return f"{self.name}.version" in metadata.get("spectral_norm", {})

    def complete(self, state: dict[str, Any], prefix: str, metadata: dict[str, Any], strict: bool,
                 missing: list[str], *rest: object) -> None:  # fmt: skip
        """Find the vector v that a state_dict of the first version lacks: of the weight, its quotient and u."""
        key = prefix + self.name
        if self.noted(metadata) or (key not in state and all(key + end in state for end in ("_orig", "_u", "_v"))):
            return
        lacking = [key + end for end in ("_orig", "", "_u") if key + end not in state]
        if lacking:
            missing.extend(lacking if strict else [])
            return
        with no_grad():
            original = state[key + "_orig"]
            sigma, matrix = (original / state.pop(key)).mean(), as_matrix(original, self.dim)
            state[key + "_v"] = right_vector(matrix, state[key + "_u"], sigma)

    def remove(self, module: Module) -> None:
        """Put the normalised weight back as one parameter."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: tuple[Tensor, ...]) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def owner_of(hook: object) -> object:
    """The object whose method a hook of a module is, or None."""
    return getattr(getattr(hook, "hook", hook), "__self__", None)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, before every forward.

    Source: Miyato et al., Spectral Normalization for Generative Adversarial Networks (2018).
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Undo `spectral_norm`.  Raises ValueError where there is none."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for others in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
                for other in [k for k, h in others.items() if owner_of(h) is hook]:
                    del others[other]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
