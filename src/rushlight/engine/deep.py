"""Runs inside runs inside runs: when the stack of a thread would not hold them, the next goes to a thread of its own."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from rushlight.basics.state import DEFAULTS, modes, set_mode

DEEP = 20  # how many runs one thread holds, with what a user's backward and a checkpointed function add to each


def in_thread(work: Callable[[], Any]) -> None:
    """Call `work` in a new thread, in the modes of this one, which waits for it; an error in it is raised here."""
    given = {name: modes.__dict__[name] for name in DEFAULTS if modes.__dict__[name] != DEFAULTS[name]}
    context, errors = contextvars.copy_context(), []

    def body() -> None:
        try:
            for name, value in given.items():
                set_mode(name, value)
            context.run(work)
        except BaseException as error:  # also those that are no Exception: the waiting thread is the one they are for
            errors.append(error)
        finally:
            for name, default in DEFAULTS.items():
                set_mode(name, default)

    thread = threading.Thread(target=body, name="rushlight-backward", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
