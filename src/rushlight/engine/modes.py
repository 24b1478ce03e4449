"""Switching gradients on and off: context managers that decorate functions, generators and coroutines too."""

from __future__ import annotations

import functools
import warnings
from types import MappingProxyType, TracebackType
from typing import Any

from rushlight.state import modes, set_mode


class Mode:
    """Sets modes of this thread; as a decorator, while the function (or each step of the generator) runs."""

    settings: Any = None  # {mode: value}

    def __init__(self) -> None:
        self._former: list[dict[str, Any]] = []

    def __enter__(self) -> Any:
        self._former.append({name: set_mode(name, value) for name, value in self.settings.items()})
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name, value in self._former.pop().items():
            set_mode(name, value)

    def clone(self) -> Mode:
        """A fresh context of the same kind: one decorator may be entered by several threads at once."""
        return type(self)()

    def __call__(self, function: Any) -> Any:
        return decorate(function, self.clone)


def decorate(function: Any, context: Any) -> Any:
    """`function` with a fresh `context()` around each call, or around each step of what it generates or awaits."""
    import inspect

    if inspect.isclass(function):
        warnings.warn(
            f"Decorating classes is deprecated: what decorates {function.__name__} applies to making its objects alone, which "
            "is no class any more. Decorate its functions, as __init__",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isgeneratorfunction(function):
        return _generator(function, context)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, context)

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return within


def _generator(function: Any, context: Any) -> Any:
    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        return (yield from _stepped(steps, context))

    return within


def _stepped(steps: Any, context: Any) -> Any:
    """Drive a generator or coroutine so that `context()` is active only while its own code runs."""
    advance, value = steps.send, None
    try:
        while True:
            with context():
                try:
                    produced = advance(value)
                except StopIteration as stop:
                    return stop.value
            try:
                advance, value = steps.send, (yield produced)
            except GeneratorExit:
                raise
            except BaseException as error:
                advance, value = steps.throw, error
    finally:
        with context():
            steps.close()


class _Awaitable:
    def __init__(self, steps: Any, context: Any):
        self.steps, self.context = steps, context

    def __await__(self) -> Any:
        return _stepped(self.steps, self.context)


def _coroutine(function: Any, context: Any) -> Any:
    @functools.wraps(function)
    async def within(*args: Any, **kwargs: Any) -> Any:
        return await _Awaitable(function(*args, **kwargs), context)

    return within


class no_grad(Mode):
    """Record nothing inside: results do not require grad.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    settings: Any = MappingProxyType({"grad": False})

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)


class enable_grad(no_grad):
    """Record inside, also within no_grad."""

    settings: Any = MappingProxyType({"grad": True})


class set_grad_enabled(Mode):
    """Set recording on or off: at once as a function, until the end of the block as a context manager."""

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = bool(mode)
        self.before = set_mode("grad", self.mode)

    def __enter__(self) -> None:
        set_mode("grad", self.mode)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("grad", self.before)

    def __call__(self, function: Any) -> Any:
        set_mode("grad", self.before)
        return decorate(function, self.clone)

    def clone(self) -> Any:
        return set_grad_enabled(self.mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):
    """As no_grad; what is made inside can never enter a graph, and views and versions are not tracked."""

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True):
        super().__init__()
        self.mode = bool(mode)
        self.settings = {"inference": self.mode, "grad": not self.mode, "forward_grad": not self.mode}

    def clone(self) -> Any:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether operators are recorded on this thread."""
    return modes.grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return modes.inference
