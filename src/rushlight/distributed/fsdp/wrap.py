"""Which modules ``FullyShardedDataParallel`` shards by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight.absent import walls
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
           "transformer_auto_wrap_policy"]  # fmt: skip


class _Policy:
    """Says of modules which are sharded by themselves."""


class ModuleWrapPolicy(_Policy):
    """Shards modules of these classes by themselves."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)


class CustomPolicy(_Policy):
    """Shards modules by themselves for which ``lambda_fn(module)`` is true."""

    def __init__(self, lambda_fn: Callable[[Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or bool(self._lambda_fn(module))


def always_wrap_policy(*args: object, **kwargs: object) -> bool:
    """Every module by itself."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], Any]
) -> bool:
    """Modules for which ``lambda_fn(module)`` is true; to be given `lambda_fn` by ``functools.partial``."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Modules of these classes; to be given `transformer_layer_cls` by ``functools.partial``."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000,
                                force_leaf_modules: set[type[Module]] | None = None,
                                exclude_wrap_modules: set[type[Module]] | None = None) -> bool:  # fmt: skip
    """Modules with at least `min_num_params` elements in parameters that no inner one has; lists and dicts of modules never."""
    excluded = tuple({ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules)
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(force_leaf_modules or ()))
    return large and not isinstance(module, excluded)


def chosen(module: Module, policy: Any, ignored: set[Any]) -> list[Module]:
    """The modules inside of another that a policy shards by themselves, inner ones first."""
    found: list[Module] = []

    def visit(parent: Module) -> int:
        """The elements of parameters inside that are sharded with an inner module."""
        taken = 0
        for child in parent.children():
            if child in ignored or child in found:
                continue
            count = sum(p.numel() for p in child.parameters())
            inner = visit(child) if asked(policy, child, True, count) else 0
            if asked(policy, child, False, count - inner) and count > inner:
                found.append(child)
                inner = count
            taken += inner
        return taken

    visit(module)
    return found


def asked(policy: Any, module: Module, recurse: bool, count: int) -> bool:
    """The answer of a policy: whether to look inside a module, or to shard it."""
    return bool(policy(module=module, recurse=recurse, nonwrapped_numel=count))


__getattr__ = walls.lacking(__name__)
