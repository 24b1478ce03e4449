"""Operators that take functions: `torch._ops.HigherOrderOperator`, of which programs derive theirs."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable
from typing import Any

from rushlight.library import namespaces
from rushlight.ops.python.classes import leaves
from rushlight.ops.python.handing import kinds
from rushlight.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

__all__ = ["BelowAutograd", "HigherOrderOperator"]

AUTOGRAD = ("AutogradCPU", "Autograd", "CompositeImplicitAutograd")  # keys of what differentiates, the nearest first
CPU = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


class _Here(threading.local):
    """This thread's part: how many contexts it is in where what differentiates is passed by."""

    below = 0


here = _Here()


class BelowAutograd:
    """Context manager in which such operators go past what differentiates them to modes and kernels."""

    def __enter__(self) -> None:
        here.below += 1

    def __exit__(self, *error: object) -> None:
        here.below -= 1


class HigherOrderOperator(abc.ABC):
    """An operator some of whose arguments are functions.  A subclass has `__call__`, which calls this class's.

    What it computes is registered by `py_impl`, for a key of dispatch, for a class of modes or for a class of tensors.  A call goes
    to the kernel of the key Autograd, and within `torch._C._AutoDispatchBelowAutograd` to the innermost mode, to
    tensors whose class has `__torch_dispatch__`, and to the kernel of the CPU or of CompositeExplicitAutograd.
    Raises NotImplementedError where there is none.
    """

    def __init__(self, name: str, *, cacheable: bool = False, supports_training_input_mutation: bool = False):
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed: derive a class from it")
        self._name = self.__name__ = name
        self.namespace, self._cacheable = "higher_order", cacheable
        self.supports_training_input_mutation = supports_training_input_mutation
        self.py_kernels: dict[str, Callable[..., Any]] = {}
        self.python_key_table: dict[type, Callable[..., Any]] = {}
        self.non_fallthrough_keys: set[str] = set()
        self.__module__ = f"torch.ops.{self.namespace}"
        namespaces.packets.setdefault(self.namespace, {})[name] = self  # type: ignore[assignment]

    def py_impl(self, k: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator of what computes it.  k: a key of dispatch, a class of modes or a class of tensors.

        Raises RuntimeError for one that has something already.
        """
        table: dict[Any, Callable[..., Any]] = self.python_key_table if isinstance(k, type) else self.py_kernels
        key = k if isinstance(k, type) else k.name

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if key in table:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator {self._name}")
            table[key] = fn
            return fn

        return register

    def py_autograd_impl(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator of what differentiates it."""
        self.py_kernels["Autograd"] = fn
        return fn

    def py_functionalize_impl(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Accepted: nothing is traced that would ask for it."""
        return fn

    def fallthrough(self, dispatch_key: Any) -> None:
        """Let calls pass by a key."""
        self.py_kernels[dispatch_key.name] = self.below

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether something is registered for a key."""
        return k.name in self.py_kernels

    def cacheable(self) -> bool:
        """Whether a compiler may keep what it makes of it."""
        return self._cacheable

    def name(self) -> str:
        """Its name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        kernel = None if here.below else self.kernel(AUTOGRAD)
        return self.below(*args, **kwargs) if kernel is None else kernel(*args, **kwargs)

    def kernel(self, keys: tuple[str, ...]) -> Callable[..., Any]:
        """What is registered for the first of these keys.  Raises NotImplementedError where nothing is for any."""
        for key in keys:
            if key in self.py_kernels:
                return self.py_kernels[key]
        raise NotImplementedError(
            f"could not find kernel for HigherOrderOperator {self._name} at dispatch key DispatchKey.{keys[0]} "
            f"(resolved from DispatchKey.{keys[0]})"
        )

    def below(self, *args: Any, **kwargs: Any) -> Any:
        """What it gives below what differentiates it."""
        mode = _get_current_dispatch_mode()
        if mode is not None:
            return self.by_mode(mode, args, kwargs)
        for kind in kinds(leaves((args, kwargs))):
            if kind not in self.python_key_table:
                raise NotImplementedError(f"There was no rule registered for HOP {self._name} and subclass {kind}")
            found = self.python_key_table[kind](*args, **kwargs)
            if found is not NotImplemented:
                return found
        return self.kernel(CPU)(*args, **kwargs)

    def by_mode(self, mode: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a mode makes of a call."""
        own = self.python_key_table.get(type(mode))
        if own is None and not getattr(mode, "supports_higher_order_operators", False):
            raise NotImplementedError(
                f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}: register one by py_impl, or set its "
                "supports_higher_order_operators to True where its __torch_dispatch__ takes such operators"
            )
        TorchDispatchMode.__exit__(mode)
        try:
            if own is not None:
                return own(mode, *args, **kwargs)
            found = mode.__torch_dispatch__(self, tuple(kinds(leaves((args, kwargs)))), args, kwargs)
            return self.below(*args, **kwargs) if found is NotImplemented else found
        finally:
            TorchDispatchMode.__enter__(mode)
