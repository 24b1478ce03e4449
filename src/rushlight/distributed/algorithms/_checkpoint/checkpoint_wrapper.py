"""Wrappers around modules that compute activations again in backward, or keep them in other memory until then.

Names of parameters in `state_dict()` and `load_state_dict` are those of the wrapped module, so that files are the same
with and without wrappers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from rushlight.autograd.graph import save_on_cpu
from rushlight.checkpoint import checkpoint
from rushlight.distributed.fsdp.wrap import asked, lambda_auto_wrap_policy
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
           "checkpoint_wrapper", "offload_wrapper"]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(Enum):
    """How a module is run again: `use_reentrant` of `torch.utils.checkpoint.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _renamed(state: dict[str, Any], old: str, new: str) -> None:
    """Let the names of a state that begin with `old` begin with `new`."""
    for name in [name for name in state if name.startswith(old)]:
        state[new + name[len(old) :]] = state.pop(name)


def _saved(module: Module, state: dict[str, Any], prefix: str, *args: object) -> dict[str, Any]:
    _renamed(state, prefix + _CHECKPOINT_PREFIX, prefix)
    return state


def _loaded(module: Module, state: dict[str, Any], prefix: str, *args: object) -> None:
    _renamed(state, prefix, prefix + _CHECKPOINT_PREFIX)


class ActivationWrapper(Module):
    """A module around another, which is asked for everything that this one has not.  Subclasses define `forward`."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_saved)
        self._register_load_state_dict_pre_hook(_loaded, with_module=True)

    def forward(self, *args: object, **kwargs: object) -> Any:
        """Raises ValueError: subclasses have it."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Names and parameters, by the names that the wrapped module has for them."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


class OffloadWrapper(ActivationWrapper):
    """Keeps what the module saves for backward in host memory: see `torch.autograd.graph.save_on_cpu`."""

    def forward(self, *args: object, **kwargs: object) -> Any:
        """What the module gives."""
        with save_on_cpu():
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Keeps the module's inputs alone for backward, and runs it again there.

    checkpoint_fn: called with the module and its arguments, by default `torch.utils.checkpoint.checkpoint`; other keyword
    arguments are given to it, too.
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: object, **kwargs: object) -> Any:
        """What the module gives."""
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names = tuple(kwargs)  # the reentrant one sees tensors by position alone

        def by_position(*given: object) -> Any:
            return self._checkpoint_wrapped_module(
                *given[: len(args)], **dict(zip(names, given[len(args) :], strict=True))
            )

        return self.checkpoint_fn(by_position, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module in an `OffloadWrapper`."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module in a `CheckpointWrapper`.

    >>> import rushlight as torch
    >>> from rushlight.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> layer = checkpoint_wrapper(torch.nn.Linear(3, 2))
    >>> list(layer.state_dict()), layer(torch.ones(1, 3)).shape
    (['weight', 'bias'], torch.Size([1, 2]))
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def _always(module: Module) -> bool:
    return True


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], Any] = _always,
    auto_wrap_policy: Callable[..., Any] | None = None,
) -> None:
    """Put modules inside of a model into wrappers, in place: those for which `check_fn(module)` is true, or a policy of FSDP is.

    The model itself stays as it is.
    """
    policy = auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    if asked(policy, model, True, _elements(model)):
        _wrap_inside(model, policy, checkpoint_wrapper_fn)


def _elements(module: Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _wrap_inside(module: Module, policy: object, wrap: Callable[[Module], Module]) -> int:
    """Wrap what the policy chooses among the modules inside, inner ones first; how many elements of parameters that takes."""
    taken = 0
    for name, child in list(module.named_children()):
        count = _elements(child)
        if not asked(policy, child, True, count):
            continue
        inner = _wrap_inside(child, policy, wrap)
        if asked(policy, child, False, count - inner):
            setattr(module, name, wrap(child))
            inner = count
        taken += inner
    return taken
