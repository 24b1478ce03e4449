"""Switching gradients on and off: context managers that decorate functions, generators and coroutines too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast, overload

from rushlight.basics.caller import warn
from rushlight.basics.state import modes, set_mode

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

F = TypeVar("F")
Steps: TypeAlias = "Generator[Any, Any, Any] | Coroutine[Any, Any, Any]"


def switch(settings: dict[str, Any]) -> dict[str, Any]:
    """Set these modes of this thread; their former values."""
    return {name: set_mode(name, value) for name, value in settings.items()}


class Mode:
    """Sets modes of this thread; as a decorator, while the function (or each step of the generator) runs."""

    settings: Any = None  # {mode: value}

    def __init__(self) -> None:
        self._former: list[Any] = []  # a dictionary of former values for each time that it was entered

    def __enter__(self) -> object:
        self._former.append(switch(self.settings))
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        switch(self._former.pop())

    def clone(self) -> Mode:
        """A fresh context of the same kind: one decorator may be entered by several threads at once."""
        return type(self)()

    def __call__(self, function: F) -> F:
        return cast(F, decorate(function, self.clone))


def decorate(
    function: Any, context: Callable[..., Any], around: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """`function` with a fresh `context()` around each call, or around each step of what it generates or awaits.

    around: makes of a plain function one that does the same faster.
    """
    if inspect.isclass(function):
        warn(
            f"Decorating classes is deprecated: what decorates {function.__name__} applies to making its objects alone, which "
            "is no class any more. Decorate its functions, as __init__",
            FutureWarning,
        )
    if inspect.isgeneratorfunction(function):
        return _generator(function, context)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, context)
    if around is not None:
        return functools.wraps(function)(around(function))

    @functools.wraps(function)
    def within(*args: object, **kwargs: object) -> object:
        with context():
            return function(*args, **kwargs)

    return within


def _generator(function: Callable[..., Any], context: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def within(*args: object, **kwargs: object) -> Generator[Any, Any, Any]:
        steps = function(*args, **kwargs)
        return (yield from _stepped(steps, context))

    return within


def _stepped(steps: Steps, context: Callable[..., Any]) -> Generator[Any, Any, Any]:
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
    def __init__(self, steps: Steps, context: Callable[..., Any]):
        self.steps, self.context = steps, context

    def __await__(self) -> Generator[Any, Any, Any]:
        return _stepped(self.steps, self.context)


def _coroutine(function: Callable[..., Any], context: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def within(*args: object, **kwargs: object) -> object:
        return await _Awaitable(function(*args, **kwargs), context)

    return within


def switched(grad: bool) -> dict[str, bool]:
    """The modes that switch gradients on or off: inside of inference mode nothing is recorded, whatever is asked for."""
    return {"grad": False, "grad_asked": grad} if modes.inference else {"grad": grad}


def entered(grad: bool) -> Any:
    """Switch gradients on or off; what `left` takes to switch them back."""
    # One mode, without a dictionary of them: loops without gradients do this in every step.
    return switch(switched(grad)) if modes.inference else set_mode("grad", grad)


def left(former: Any) -> None:
    """Give the modes that `entered` set their former values."""
    if former.__class__ is bool:
        set_mode("grad", former)
    else:
        switch(former)


class no_grad(Mode):
    """Record nothing inside: results do not require grad.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False

    if TYPE_CHECKING:

        @overload
        def __new__(cls) -> Self: ...
        @overload
        def __new__(cls, function: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, function: F | None = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)

    def __enter__(self) -> None:
        self._former.append(entered(self.enabled))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        left(self._former.pop())

    def __call__(self, function: F) -> F:
        return cast(F, decorate(function, self.clone, self._around))

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        enabled = self.enabled

        def within(*args: object, **kwargs: object) -> object:
            former = entered(enabled)
            try:
                return function(*args, **kwargs)
            finally:
                left(former)

        return within


class enable_grad(no_grad):
    """Record inside, also within no_grad; not within inference_mode."""

    enabled = True


class set_grad_enabled(Mode):
    """Set recording on or off: at once as a function, until the end of the block as a context manager."""

    def __init__(self, mode: bool):
        super().__init__()
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self.before = switch(switched(self.mode))

    def __enter__(self) -> None:
        switch(switched(self.mode))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        switch(self.before)

    def __call__(self, function: F) -> F:
        switch(self.before)
        return cast(F, decorate(function, self.clone))

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):
    """As no_grad; what is made inside can never enter a graph, and views and versions are not tracked."""

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True):
        super().__init__()
        self.mode = bool(mode)
        self.settings = {
            "inference": self.mode,
            "grad": not self.mode,
            "grad_asked": False,
            "forward_grad": not self.mode,
        }

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether gradients are switched on in this thread: operators are recorded then, but in inference mode."""
    return modes.grad or modes.grad_asked


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return modes.inference
