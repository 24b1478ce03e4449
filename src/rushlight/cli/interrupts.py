"""Ctrl-C, SIGTERM and a closed terminal, while something is done that is better finished."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["handled", "noted"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def handled(handler: Callable[[int, Any], Any], *signals: int, unless_set: bool = False) -> Iterator[None]:
    """Have signals handled so within.  unless_set: but for those for which somebody chose another way than the system's."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may choose
        return
    before = {number: signal.getsignal(number) for number in signals}
    # Under nohup nothing hangs up.
    kept = set(before.values()) - {signal.SIG_DFL} if unless_set else {signal.SIG_IGN}
    chosen = [number for number, was in before.items() if was not in kept]
    try:
        for number in chosen:
            signal.signal(number, handler)
        yield
    finally:
        for number in chosen:
            if signal.getsignal(number) is handler:
                signal.signal(number, before[number] or signal.SIG_DFL)


@contextlib.contextmanager
def noted(doing: str) -> Iterator[list[int]]:
    """Within, the first signal that would end the program is only noted, in the list; the second raises KeyboardInterrupt."""
    found: list[int] = []

    def note(number: int, frame: Any) -> None:
        found.append(number)
        if len(found) > 1:
            raise KeyboardInterrupt
        os.write(2, f"\nrushlight: {doing}; once more gives it up\n".encode())  # `print` may be what was interrupted

    with handled(note, *SIGNALS):
        yield found
