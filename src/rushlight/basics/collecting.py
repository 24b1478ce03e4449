"""Python's search for garbage in cycles, put off."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """No search within: for a stretch that makes many objects of which nearly all stay.

    They count as old afterwards, as if they had been searched, so that the next search does not begin with them.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else `unfreeze` would thaw what the program froze
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        if searching:
            gc.enable()
