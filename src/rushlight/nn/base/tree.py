"""Walking a tree of modules: what is in it by name, and what is done to all of it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from rushlight.basics.state import special
from rushlight.nn.base.registry import Registry
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


class Tree(Registry):
    """A module and its children, found by dotted names."""

    # By name ---------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at the dotted path `target` ("" is this one).  Raises AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Registry):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at the dotted path `target`.

        Raises ValueError for an empty path or what is no module, AttributeError where the parent, or with
        `strict=True` the place itself, does not exist.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Registry):
            raise ValueError(f"`module` is not an nn.Module, found {builtins.type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Registry):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path `target`.  Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        found = _member(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path `target`.  Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = _member(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # Walking ---------------------------------------------------------------------------------------

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Members of this module, or of the whole tree, without None and, if asked for, each object once."""
        seen: set[Any] = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else ((prefix, self),)
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Names and parameters of this module and, with `recurse`, its descendants; a shared one once."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters of this module and, with `recurse`, its descendants; a shared one once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers of this module and, with `recurse`, its descendants; a shared one once."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers of this module and, with `recurse`, its descendants; a shared one once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Names and modules directly below this one; a shared one once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Modules directly below this one; a shared one once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Dotted names and modules of the whole tree, this one (under `prefix`) first; a shared one once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """All modules of the tree, this one first; a shared one once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # Done to all -----------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every module of the tree, children before parents, and return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training (or, with False, evaluation) mode for the whole tree.  Raises ValueError for a non-bool."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {builtins.type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are accumulated, for every parameter of the tree (False freezes it)."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Free the gradients of all parameters or, with `set_to_none=False`, fill them with zeros."""
        if special.launcher is not None:
            special.launcher.cleared(self.parameters(), set_to_none)
        for parameter in self.parameters():
            gradient = parameter._grad if set_to_none else parameter.grad
            if gradient is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if gradient.grad_fn is not None:
                gradient.detach_()
            else:
                gradient.requires_grad_(False)
            gradient.zero_()

    def share_memory(self) -> Self:
        """Move parameters and buffers to where other processes see them; this module."""
        for t in (*self.parameters(), *self.buffers()):
            if is_lazy(t):
                t.share_memory_()  # which refuses
        return self._apply(lambda t: t.share_memory_())

    def _get_name(self) -> str:
        return builtins.type(self).__name__


def _member(module: Module, name: str) -> Tensor:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)
