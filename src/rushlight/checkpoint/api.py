"""checkpoint and its settings: compute again in backward instead of keeping."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.state import modes
from rushlight.checkpoint.devices import check_backward_validity
from rushlight.checkpoint.frame import Frame, Settings, refuse_if_disabled
from rushlight.checkpoint.reentrant import CheckpointFunction
from rushlight.tensor import Tensor

CHECKS = ["default", "none", "values"]
WARNING = (
    "{}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
    "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current "
    "default behavior, you can pass use_reentrant=True."
)


def noop_context_fn() -> tuple[Any, Any]:
    """The default `context_fn`: contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[..., Any] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function`, keep its inputs alone for backward, and run it again there for what its gradients need.

    Args:
        function: it must do the same both times; `preserve_rng_state=True` (the default) sees to its random numbers.
        use_reentrant: False, which is recommended, works with every form of backward, higher orders, transformations,
            nesting and keyword arguments. True runs a backward inside the backward; no `torch.autograd.grad`. None, as in
            PyTorch, warns and is True.
        context_fn: gives two context managers, one for each run: see `create_selective_checkpoint_contexts`.
        determinism_check: "default" compares operators, shapes and dtypes of what both runs save, "values" the values
            too, "none" nothing. The error names operator and line.
        debug: the error lists all operators of both runs.
        early_stop: the second run ends as soon as everything that is needed is there.

    Saved-tensor hooks around the call, stores and budgets among them, pack the tensors among the arguments; what they unpack
    is what the second run gets. Raises ValueError for arguments that do not go together, RuntimeError where saved-tensor hooks
    are disabled, and `CheckpointError` in backward where the runs differ.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda a: (a.exp() * a).sin(), x, use_reentrant=False).sum().backward()
    >>> x.grad.shape
    torch.Size([2])
    """
    if use_reentrant is None:
        warn(WARNING.format("torch.utils.checkpoint"), UserWarning)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        check_backward_validity(args)
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {CHECKS}, but got {determinism_check}")
    if not modes.grad:
        return function(*args, **kwargs)
    refuse_if_disabled()
    debug = debug if Settings.debug is None else Settings.debug
    early = early_stop if Settings.early_stop is None else Settings.early_stop
    frame = Frame(function, args, kwargs, context_fn(), preserve, determinism_check, debug, early)
    return frame.forward(args, kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: object, use_reentrant: bool | None = None,
                          **kwargs: object) -> Any:  # fmt: skip
    """Run functions (or an `nn.Sequential`) one after the other, in `segments` of which all but the last are checkpointed.

    Raises ValueError for unknown keyword arguments (`preserve_rng_state` is the only one) and for fewer functions than
    segments.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = torch.utils.checkpoint.checkpoint_sequential([torch.sin, torch.exp], 2, x, use_reentrant=False)
    """
    if use_reentrant is None:
        warn(WARNING.format("torch.utils.checkpoint.checkpoint_sequential"), UserWarning)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments
    if size == 0:
        raise ValueError(
            f"checkpoint_sequential: {segments} segments need at least as many functions, got {len(functions)}"
        )
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        part = in_order(functions[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return in_order(functions[end:])(input)


def in_order(functions: list[Any]) -> Callable[..., Any]:
    """The composition of functions, the first one first."""

    def run(input: Tensor) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether the second runs of calls made inside stop early, whatever those calls say.

    >>> import rushlight as torch
    >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    former, Settings.early_stop = Settings.early_stop, enable
    try:
        yield
    finally:
        Settings.early_stop = former


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """While active, whether checkpointed calls list their operators in errors, whatever `debug` they are given."""
    former, Settings.debug = Settings.debug, enabled
    try:
        yield
    finally:
        Settings.debug = former
