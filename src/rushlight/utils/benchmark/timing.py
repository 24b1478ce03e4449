"""Measuring a statement: `timeit` of Python, with threads set, warmed up, and as often as the times need."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.utils.benchmark.measurements import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement.

    Args:
        stmt, setup: code, and what runs before, once for each measurement.
        global_setup: C++ alone.
        timer: a clock: seconds.
        globals: the names that the code may use.
        label, sub_label, description, env: how tables call it.
        num_threads: that operators may use.
        language: Python.  Raises NotImplementedError for C++, ValueError for another one.

    >>> measured = Timer("x + 1", globals={"x": 1}).timeit(100)
    >>> measured.number_per_run, len(measured.times)
    (100, 1)
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
                 globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON):  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("torch.utils.benchmark.Timer: code in C++ is not compiled here: give Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError("global_setup is of C++ alone: put it into setup")
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, globals={} if globals is None else dict(globals))

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def _timed(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run it that often, after a few times to warm up; one time."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timed(max(number // 100, 2))
            return self._measured(number, [self._timed(number)])

    def _block(self, least: float) -> int:
        """How many times make a block beside which measuring costs nothing, and which takes a thousandth of `least` seconds."""
        cost, number = min(self._timer.timeit(0) for _ in range(5)), 1
        while (taken := self._timed(number)) < least and (cost / taken > 1e-4 or taken < least / 1000):
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run it in blocks until they took `min_run_time` seconds.  callback: told of each block's number and time."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block(min_run_time), [0.0]
            while sum(times) < min_run_time:
                times.append(self._timed(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measured(number, times[1:])

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:  # fmt: skip
        """Run it in blocks until quarters around the median are closer than `threshold` of it, or `max_run_time` is over."""
        with set_torch_threads(self._task_spec.num_threads):
            times: list[float] = []
            number = self._block(min_run_time / 2)
            while sum(times) < max_run_time:
                times.append(self._timed(number))
                if callback is not None:
                    callback(number, times[-1])
                enough = sum(times) >= min_run_time and len(times) > 3
                if enough and self._measured(number, times).meets_confidence(threshold):
                    break
        return self._measured(number, times)

    def collect_callgrind(self, *args: object, **kwargs: object) -> NoReturn:
        """Refused: raises NotImplementedError.  Instructions are counted by valgrind, which knows nothing of NumPy's memory."""
        raise NotImplementedError("torch.utils.benchmark.Timer.collect_callgrind: instructions are not counted here; "
                                  "blocked_autorange measures times")  # fmt: skip
