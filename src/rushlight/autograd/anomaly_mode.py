"""Anomaly detection: where an operator whose gradient is wrong was called."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rushlight.basics.state import modes, set_mode
from rushlight.engine.anomaly import Settings
from rushlight.engine.modes import decorate


class set_detect_anomaly:
    """Switch anomaly detection on or off: at once as a function, until the end of the block as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True, check_inf: bool = False):
        self.former = set_mode("anomaly", Settings(check_nan, check_inf) if mode else None)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None,
                 tb: TracebackType | None = None) -> None:  # fmt: skip
        set_mode("anomaly", self.former)


class detect_anomaly:
    """While active, operators remember where they were called, and errors of a backward say so.

    check_nan: a backward that gives NaN raises RuntimeError, which names the operator, the shapes and the user's lines;
    check_inf: the same for infinity. In derivatives of higher order all forward calls in the chain are named. Contexts
    nest: the innermost counts.

    >>> import rushlight as torch
    >>> x = torch.zeros(1, requires_grad=True)
    >>> with torch.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True, check_inf: bool = False):
        self.check_nan, self.check_inf = check_nan, check_inf
        self.former: list[Any] = []

    def __enter__(self) -> None:
        self.former.append(set_mode("anomaly", Settings(self.check_nan, self.check_inf)))

    def __exit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None,
                 tb: TracebackType | None = None) -> None:  # fmt: skip
        set_mode("anomaly", self.former.pop())

    def __call__(self, function: Any) -> Any:
        return decorate(function, lambda: detect_anomaly(self.check_nan, self.check_inf))


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread."""
    return modes.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN in this thread, where it is on; True where it is not."""
    return modes.anomaly is None or modes.anomaly.check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off in this thread."""
    set_mode("anomaly", Settings(check_nan) if mode else None)
