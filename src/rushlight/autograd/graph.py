"""The graph seen from outside: nodes, edges, saved-tensor hooks, hooks on several gradients."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from numpy import ndarray

from rushlight.autograd.mutation import allow_mutation_on_saved_tensors
from rushlight.autograd.run import GradientEdge, get_gradient_edge
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.handles import RemovableHandle
from rushlight.basics.state import modes, set_mode
from rushlight.engine.node import Node, edge_of
from rushlight.engine.reach import target_of
from rushlight.engine.saved import Copying
from rushlight.storage import bump
from rushlight.tensor import Tensor, wrap


class saved_tensors_hooks:
    """While active, tensors are saved as what `pack_hook(tensor)` returns, and `unpack_hook` gives them back.

    Contexts nest: the innermost hook packs first, and the one around it packs the tensors in what that
    returned.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    _pair: type[tuple[Any, ...]] = tuple  # says to operators what may be kept in the place of what these hooks get

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if modes.saved_hooks_disabled is not None:
            raise RuntimeError(modes.saved_hooks_disabled)
        if not (callable(self.pack_hook) and callable(self.unpack_hook)):
            raise TypeError("saved_tensors_hooks: pack_hook and unpack_hook must be functions, got "
                            f"{type(self.pack_hook).__name__} and {type(self.unpack_hook).__name__}")  # fmt: skip
        if modes.sleeper is not None:
            modes.sleeper()
        set_mode("saved_hooks", (*modes.saved_hooks, self._pair((self.pack_hook, self.unpack_hook))))

    def __exit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None,
                 tb: TracebackType | None = None) -> None:  # fmt: skip
        set_mode("saved_hooks", modes.saved_hooks[:-1])


def copied_to_host(array: Array) -> Array:
    """A copy of an array in host memory, of the same layout if that has no gaps."""
    return array.copy(order="K")


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory while active; they return to their device for backward.

    On the CPU it copies, as PyTorch does, so that what is saved no longer shares memory with the tensor.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor: Tensor) -> tuple[Tensor | device, ...]:
            array = tensor._array
            return tensor.device, wrap(copied_to_host(array)) if array.__class__ is ndarray else tensor.clone()

        def unpack(packed: Any) -> Any:
            where, tensor = packed
            return tensor.to(where)

        super().__init__(pack, unpack)
        if type(self) is save_on_cpu:
            self._pair = Copying


class disable_saved_tensors_hooks(ContextDecorator):
    """While active, or while a decorated function runs, entering saved_tensors_hooks raises RuntimeError with `error_message`."""

    def __init__(self, error_message: str):
        self.error_message = error_message

    def __enter__(self) -> None:
        if modes.saved_hooks:
            raise RuntimeError(self.error_message)
        self.former = set_mode("saved_hooks_disabled", self.error_message)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("saved_hooks_disabled", self.former)


class MultiHandle(RemovableHandle):
    """Removes the hooks that together make one multi-grad hook."""

    def __init__(self, handles: tuple[RemovableHandle, ...]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once per backward: with the list of gradients of `tensors` (None for those not reached) when all that
    will arrive have, or, in mode "any", with the first that arrives.

    Raises ValueError for another mode; AssertionError, in mode "all", for a tensor that requires no grad: in mode "any" it
    is passed over.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(t for t in tensors if mode == "all" or t.requires_grad)
    for i, t in enumerate(tensors):
        if not t.requires_grad:
            raise AssertionError(
                f"register_multi_grad_hook(): tensor {i} requires no grad, so that no gradient of it arrives: leave it out, "
                'or use mode="any"'
            )
    watch = _All(tensors, fn) if mode == "all" else _Any(fn)
    return MultiHandle(tuple(t.register_hook(watch.at(i)) for i, t in enumerate(tensors)))


class _Any:
    """Calls the hook with the first gradient of each run."""

    def __init__(self, fn: Callable[..., Any]):
        self.fn, self.lock = fn, threading.Lock()
        self.last: Any = None  # the token of the last run that called the hook

    def at(self, i: int) -> Any:
        def hook(grad: Tensor) -> None:
            run = modes.run.token
            with self.lock:
                first, self.last = run is not self.last, run
            if first:
                self.fn(grad)

        return hook


class _All:
    """Gathers gradients until every tensor that the run reaches has one."""

    def __init__(self, tensors: tuple[Tensor, ...], fn: Callable[..., Any]):
        self.fn, self.count, self.lock = fn, len(tensors), threading.Lock()
        # Weakly: the hooks that hold this live on those nodes and leaves.
        self.places = [weakref.ref(target_of(edge_of(t))) for t in tensors]
        # By run, and no longer than that lives: what a failed one gathered is no other's.
        self.runs: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    def at(self, i: int) -> Any:
        def hook(grad: Tensor) -> None:
            run = modes.run
            with self.lock:
                gathered = self.runs.get(run)
                if gathered is None:
                    gathered = self.runs[run] = [[None] * self.count, run.reached(ref() for ref in self.places)]
                gathered[0][i] = grad
                gathered[1] -= 1
            if gathered[1] == 0:
                self.fn(gathered[0])

        hook.counts_none = True  # type: ignore[attr-defined]
        return hook


def _get_grad_fn_or_grad_acc(t: Tensor | GradientEdge) -> Node:
    """The node that a tensor's gradient comes to: that of its operator, of a leaf its AccumulateGrad."""
    return t.node if isinstance(t, GradientEdge) else get_gradient_edge(t).node


def increment_version(tensor: Tensor | int | list[Tensor]) -> None:
    """Count a change of a tensor's memory (or of each of several) that autograd could not see."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor) if hasattr(tensor, "__iter__") else (tensor,)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, got {type(t).__name__}")
        bump(t)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted, without effect: there are no streams on the CPU."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted, without effect: there are no streams on the CPU."""


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
           "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch"]  # fmt: skip
