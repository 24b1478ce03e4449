"""Calling a module, and the hooks around its forward and backward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.basics.caller import warn
from rushlight.basics.handles import Hooks, RemovableHandle, add_hook
from rushlight.nn.base.state import Stateful
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.nn.base.backward_hooks import BackwardHook


class _Global:
    """Hooks of all modules.  While `used` is False nobody asks for them."""

    __slots__ = ("always_called", "backward", "backward_pre", "forward", "forward_pre", "legacy_backward", "used",
                 "with_kwargs")  # fmt: skip

    def __init__(self) -> None:
        self.used = False
        self.forward_pre, self.forward = Hooks(), Hooks()
        self.backward_pre, self.backward, self.legacy_backward = Hooks(), Hooks(), Hooks()
        self.with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.always_called: OrderedDict[int, bool] = OrderedDict()

    def add(self, hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
        self.used = True
        return hooks.add(hook)

    def refresh(self) -> None:
        """Note when the last hook is gone, so that calls are fast again."""
        self.used = bool(self.forward_pre or self.forward or self.backward_pre or self.backward or self.legacy_backward)


shared = _Global()
_NONE: dict[int, Any] = {}


class Hooked(Stateful):
    """A module that is called, with hooks before and after its forward and its backward."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if not self._hooked and not shared.used:
            return self.forward(*args, **kwargs)
        return self._call_hooked(args, kwargs)

    def _call_impl(self, *args: object, **kwargs: object) -> object:
        return self._call_hooked(args, kwargs)

    _wrapped_call_impl = _call_impl

    def _forward_unimplemented(self, *input: object) -> object:
        """Compute the output; every subclass overrides it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented  # so declared, an override may have any parameters

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        if shared.used:
            shared.refresh()
        called: set[int] = set()
        results: list[Any] = [None]
        try:
            return self._run(args, kwargs, called, results)
        except Exception:
            self._run_always_called(args, kwargs, called, results[0])
            raise

    def _run(self, args: tuple[Any, ...], kwargs: dict[Any, Any], called: set[int], results: list[Any]) -> Any:
        """Pre-hooks, forward, hooks; `results` keeps the latest result and `called` the hooks that have run."""
        args, kwargs = self._before(args, kwargs)
        around = self._backward_hooks_around()
        if around is not None:
            args = around.on_inputs(args)
        results[0] = self.forward(*args, **kwargs)
        for hook_id, hook, with_kwargs, _ in self._after():
            called.add(hook_id)
            replaced = hook(self, args, kwargs, results[0]) if with_kwargs else hook(self, args, results[0])
            if replaced is not None:
                results[0] = replaced
        if around is not None:
            results[0] = around.on_outputs(results[0])
        self._attach_legacy(args, results[0])
        return results[0]

    def _own(self, name: str) -> Any:
        """The hooks registered under `name`, without making their collection."""
        return self.__dict__.get(name, _NONE)

    def _before(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
        """Run the forward pre-hooks, global ones first; each may replace the arguments."""
        for hook in tuple(shared.forward_pre.values()):
            args = _replaced(args, hook(self, args))
        with_kwargs = self._own("_forward_pre_hooks_with_kwargs")
        for hook_id, hook in tuple(self._own("_forward_pre_hooks").items()):
            if hook_id not in with_kwargs:
                args = _replaced(args, hook(self, args))
                continue
            result = hook(self, args, kwargs)
            if result is not None:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        return args, kwargs

    def _after(self) -> list[tuple[int, Any, bool, bool]]:
        """Forward hooks in order, global ones first: (id, hook, wants kwargs, is always called)."""
        listed = [(i, h, i in shared.with_kwargs, i in shared.always_called) for i, h in shared.forward.items()]
        with_kwargs = self._own("_forward_hooks_with_kwargs")
        always = self._own("_forward_hooks_always_called")
        return listed + [(i, h, i in with_kwargs, i in always) for i, h in self._own("_forward_hooks").items()]

    def _run_always_called(
        self, args: tuple[Any, ...], kwargs: dict[Any, Any], called: set[int], result: object
    ) -> None:
        """After an exception: the hooks that asked to run even then and have not yet; their errors are warnings."""
        for hook_id, hook, with_kwargs, always in self._after():
            if not always or hook_id in called:
                continue
            try:
                replaced = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                result = result if replaced is None else replaced
            except Exception as error:
                warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}"
                )

    # Backward --------------------------------------------------------------------------------------

    def _backward_hooks_around(self) -> BackwardHook | None:
        """What runs the full backward hooks of this call, or None."""
        pre = [*shared.backward_pre.values(), *self._own("_backward_pre_hooks").values()]
        full = list(shared.backward.values())
        if self._is_full_backward_hook is not False:
            full += self._own("_backward_hooks").values()
        if not pre and not full:
            return None
        from rushlight.nn.base.backward_hooks import BackwardHook

        return BackwardHook(self, full, pre)

    def _attach_legacy(self, args: tuple[Any, ...], result: Any) -> None:
        """Attach hooks of `register_backward_hook` to the node that computed the result."""
        hooks = list(shared.legacy_backward.values())
        if self._is_full_backward_hook is False:
            hooks += self._own("_backward_hooks").values()
        if not hooks:
            return
        first = _first_tensor(result)
        node = None if first is None else first.grad_fn
        if node is None:
            return
        from rushlight.nn.base.backward_hooks import warn_of_legacy

        warn_of_legacy(args, result, node)
        for hook in hooks:
            node.register_hook(_Bound(hook, self))

    # Registration ----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward, or `hook(module, args, kwargs)` with `with_kwargs`.

        It may return new arguments: a value or tuple, or the pair (args, kwargs).  Returns a removable handle.
        """
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        _insert(self._forward_pre_hooks, handle, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward, or `hook(module, args, kwargs, output)` with `with_kwargs`.

        It may return another output.  With `always_call` it runs even where forward raises.  Returns a removable
        handle.
        """
        flags = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle(self._forward_hooks, extra_dict=flags)
        _insert(self._forward_hooks, handle, hook, prepend)
        for wanted, flag in zip((with_kwargs, always_call), flags, strict=True):
            if wanted:
                flag[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; it may return others."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        It may return other gradients of the inputs.  Raises RuntimeError beside hooks of `register_backward_hook`.
        """
        self._only_one_kind_of_backward_hook(True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated: call `hook(module, grad_input, grad_output)` after the node that computed the output.

        Use `register_full_backward_hook`.
        """
        self._only_one_kind_of_backward_hook(False)
        return add_hook(self._backward_hooks, hook)

    def _only_one_kind_of_backward_hook(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full


def _first_tensor(result: object) -> Tensor | None:
    """The first tensor in nested tuples, lists and dictionaries, or None."""
    while not isinstance(result, Tensor):
        if not isinstance(result, (dict, list, tuple)) or not result:
            return None
        result = next(iter(result.values() if isinstance(result, dict) else result))
    return result


class _Bound:
    """A node hook that calls a module's hook."""

    __slots__ = ("hook", "module")

    def __init__(self, hook: Callable[..., Any], module: Any):
        self.hook, self.module = hook, module

    def __call__(self, grad_input: tuple[Tensor, ...], grad_output: tuple[Tensor, ...]) -> Any:
        return self.hook(self.module, grad_input, grad_output)


def _replaced(args: tuple[Any, ...], result: tuple[int, ...] | None) -> tuple[Any, ...]:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def _insert(hooks: Hooks, handle: RemovableHandle, hook: Callable[..., Any], prepend: bool) -> None:
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module, before its own hooks."""
    return shared.add(shared.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module, before its own hooks."""
    shared.used = True
    handle = RemovableHandle(shared.forward, extra_dict=[shared.with_kwargs, shared.always_called])
    shared.forward[handle.id] = hook
    for wanted, flag in ((with_kwargs, shared.with_kwargs), (always_call, shared.always_called)):
        if wanted:
            flag[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return shared.add(shared.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return shared.add(shared.backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated: as `Module.register_backward_hook`, for every module."""
    return shared.add(shared.legacy_backward, hook)
