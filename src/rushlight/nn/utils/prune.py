"""Pruning: parts of a parameter are multiplied by 0, by a mask that is a buffer of the module.

>>> import rushlight as torch
>>> from rushlight.nn.utils import prune
>>> layer = prune.l1_unstructured(torch.nn.Linear(4, 3), "weight", amount=5)
>>> int((layer.weight == 0).sum()), sorted(dict(layer.named_parameters())), sorted(dict(layer.named_buffers()))
(5, ['bias', 'weight_orig'], ['weight_mask'])
>>> sorted(dict(prune.remove(layer, "weight").named_parameters()))
['bias', 'weight']
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.dispatch import functions as ops
from rushlight.nn.utils.convert_parameters import parameters_to_vector
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
           "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
           "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]  # fmt: skip


class BasePruningMethod(ABC):
    """A forward pre-hook that sets the parameter `_tensor_name` to its original times a mask.

    Subclasses define `compute_mask` and `PRUNING_TYPE`, which says what it gets where masks are combined: "unstructured"
    the elements left, "structured" the slices that have any left, "global" everything.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: tuple[Tensor, ...]) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """1 for elements to keep and 0 for others, never 1 where `default_mask` is 0.  t, default_mask: (*) -> (*)"""

    def apply_mask(self, module: Module) -> Tensor:
        """The original times the mask.  Raises AssertionError where the module has not been pruned."""
        if not hasattr(self, "_tensor_name"):
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Tensor, importance_scores: Tensor | None = None, **kwargs: object
    ) -> Any:
        """Prune the parameter `name` of `module`; on top of what pruned it before, by both.  Returns the hook.

        importance_scores: by which to choose, of the parameter's shape; its own values by default.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hooks(module, name)
        original = getattr(module, name + "_orig" if earlier else name)
        scores = getattr(module, name) if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}: expected "
                f"{tuple(original.shape)}, got {tuple(scores.shape)}"
            )
        if earlier:
            key, hook = earlier[0]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, getattr(module, name + "_mask").detach().clone())
            del module._forward_pre_hooks[key]
            method = container
        else:
            mask = method.compute_mask(scores, ops.ones_like(original))
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """`t` pruned, without a module.  t, default_mask, importance_scores: (*) -> (*)"""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t: expected "
                                 f"{tuple(t.shape)}, got {tuple(scores.shape)}")  # fmt: skip
        mask = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter's own, and take away original and mask."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _hooks(module: Module, name: str) -> list[tuple[Any, BasePruningMethod]]:
    """What prunes the parameter `name`, with its key among the hooks."""
    hooks = module._forward_pre_hooks.items()
    return [(key, h) for key, h in hooks if isinstance(h, BasePruningMethod) and h._tensor_name == name]


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter: each chooses among what those before it left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = list(args[0]) if len(args) == 1 and isinstance(args[0], Iterable) else list(args)
        if methods:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """One more.  Raises TypeError for what prunes nothing, ValueError for another parameter's."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int | slice) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` after the method that was added last.  Raises ValueError for an unknown PRUNING_TYPE."""
        method, mask = self._pruning_methods[-1], default_mask.to(dtype=t.dtype)
        where = _left(method, mask)
        combined = mask.clone()
        combined[where] = method.compute_mask(t[where], mask[where]).to(mask.dtype)
        return combined


def _left(method: BasePruningMethod, mask: Tensor) -> object:
    """The index of what a method gets to choose from."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return slice(None)
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(f"{type(method).__name__} of PRUNING_TYPE 'structured' has no attribute dim")
    dim = method.dim % mask.dim()
    kept = mask.sum([d for d in range(mask.dim()) if d != dim]) != 0
    return tuple([slice(None)] * dim + [kept])


class Identity(BasePruningMethod):
    """Prunes nothing, but gives the parameter a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _ByAmount(BasePruningMethod):
    """Chooses a share, if `amount` is a float from 0 to 1, or a number of elements or slices, if it is an int.

    Raises TypeError for what is no number, ValueError for others.
    """

    def __init__(self, amount: int | float):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many to prune of `size`."""
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


class _Unstructured(_ByAmount):
    """Prunes single elements, those of the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask, count = default_mask.clone(), self._count(t.nelement())
        if count:
            lowest = self._scores(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[lowest] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes single elements, drawn without looking."""

    def _scores(self, t: Tensor) -> Tensor:
        return ops.rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements closest to 0."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_ByAmount):
    """Prunes whole slices along `dim`, those of the lowest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Any:
        """One for each slice.  -> (size,)"""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        keep = t.new_ones(size).index_fill_(0, self._scores(t).topk(count, largest=False).indices, 0)
        shape = [1] * t.dim()
        shape[self.dim] = size
        return (keep.reshape(shape).expand(t.shape) * default_mask).to(default_mask.dtype)


class RandomStructured(_Structured):
    """Prunes slices, drawn without looking."""

    def _scores(self, t: Tensor) -> Tensor:
        return ops.rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the slices of the lowest `n`-norm, where n is a number or what `torch.norm` takes as p."""

    def __init__(self, amount: int | float, n: float | str, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t, self.n, self.dim)


class CustomFromMask(BasePruningMethod):
    """Prunes where `mask` is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"mask has shape {tuple(self.mask.shape)}, expected {tuple(default_mask.shape)}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Any:
    """Give the parameter `name` a mask of ones.  Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Any:
    """Prune elements of the parameter `name` at random: a share, or a number of them.  Returns the module."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Any:
    """Prune the elements of the parameter `name` that are closest to 0, or have the lowest scores.  Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Any:
    """Prune slices of the parameter `name` along `dim` at random.  Returns the module."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prune the slices of the parameter `name` along `dim` that have the lowest n-norm.  Returns the module."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Any:
    """Prune the parameter `name` where `mask` is 0.  Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: object,
) -> None:
    """Prune several parameters together: the lowest scores of all of them.

    parameters: pairs of a module and a name; importance_scores: {(module, name): scores}, those left out are the values.
    Raises TypeError for parameters that cannot be iterated over, scores in no dict, and methods that are not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    given = importance_scores or {}
    scores = parameters_to_vector([given.get((m, name), getattr(m, name)) for m, name in pairs])
    masks = [getattr(m, name + "_mask", ops.ones_like(getattr(m, name))) for m, name in pairs]
    method._tensor_name = "temp"
    final = PruningContainer(method).compute_mask(scores, parameters_to_vector(masks))
    for (module, name), part in zip(pairs, final.split([mask.numel() for mask in masks]), strict=True):
        custom_from_mask(module, name, mask=part.view_as(getattr(module, name)))


def remove(module: Module, name: str) -> Any:
    """Make the pruning of the parameter `name` permanent.  Returns the module; raises ValueError where there is none."""
    for key, hook in _hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether any parameter of the module or of those in it is pruned."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._hooks_of("_forward_pre_hooks"))


def _validate_pruning_amount_init(amount: float | str) -> None:
    """Raise TypeError for what is no real number, ValueError for no count and no share."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    value: Any = amount
    if value < 0 or (not isinstance(amount, numbers.Integral) and value > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: int, tensor_size: int) -> None:
    """Raise ValueError for more elements than there are."""
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise ValueError for a tensor without slices."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise IndexError for a dimension that is not there."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: int | float, tensor_size: int) -> int:
    """A count is itself, a share that of the size, rounded."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _compute_norm(t: Tensor, n: float | str, dim: int) -> Tensor:
    """The n-norm of each slice along `dim`.  (*) -> (size of dim,)"""
    dims = [d for d in range(t.dim()) if d != dim % t.dim()]
    return ops.norm(t, p=n, dim=dims)
