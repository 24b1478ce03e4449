"""What `torch.compile` returns: a module around the module, a function around the function, which run what they are given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rushlight._dynamo.backends.registry import get_default_backend, lookup_backend
from rushlight.basics.caller import warn
from rushlight.nn.base.registry import HOOK_FLAGS, HOOKS
from rushlight.nn.modules.module import Module

__all__ = ["OptimizedModule", "compiled", "is_dynamo_supported"]

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_OWN = {"_buffers", "_hooked", "_is_full_backward_hook", "_modules", "_non_persistent_buffers_set", "_orig_mod", "_parameters",
        *HOOKS, *HOOK_FLAGS}  # fmt: skip


class OptimizedModule(Module):
    """A module around another, `_orig_mod`, as whose child it holds it: names of parameters begin with ``_orig_mod.``.

    It has hooks of its own.  All other attributes are those of the module within, whether read, written or deleted.
    """

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        del self.__dict__["training"]
        self._modules["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module within computes, with its hooks."""
        return self._modules["_orig_mod"](*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module within is in training mode."""
        return bool(self._modules["_orig_mod"].training)

    @training.setter
    def training(self, mode: bool) -> None:
        self._modules["_orig_mod"].training = mode

    def __getattr__(self, name: str) -> Any:
        within = self.__dict__.get("_modules", {}).get("_orig_mod")
        return super().__getattr__(name) if name in _OWN or within is None else getattr(within, name)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value) if name in _OWN else setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name) if name in _OWN else delattr(self._modules["_orig_mod"], name)

    def __bool__(self) -> bool:
        return True  # a module is, whatever its length

    def __len__(self) -> int:
        if not hasattr(type(self._orig_mod), "__len__"):
            raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")
        return len(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})


def compiled(model: Any, backend: Any = None, mode: str | None = None, options: dict[str, Any] | None = None) -> Any:
    """`model`, which runs as it is: a module in an `OptimizedModule`, a function in a function; a class is returned.

    Raises RuntimeError for a mode that does not exist and for a mode beside options, InvalidBackend for the name of a
    backend that does not exist, and AssertionError for what cannot be called.
    """
    _check(model, get_default_backend() if backend is None else backend, mode, options)
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model)
    return model if inspect.isclass(model) else _around(model)


def _check(model: object, backend: Any, mode: str | None, options: dict[str, Any] | None) -> None:
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if lookup_backend(backend).__module__ != lookup_backend.__module__:
        warn(f"torch.compile: {backend!r} is not called: programs run as they are, no graph of them is captured")


def _around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def compile_wrapper(*args: object, **kwargs: object) -> Any:
        return function(*args, **kwargs)

    compile_wrapper._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return compile_wrapper


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` takes programs here: yes, and runs them as they are."""
    return True
