"""Sends samples of this process to who watches it: lines of JSON, from a thread that holds nothing up but itself."""

from __future__ import annotations

import json
import threading
from typing import IO

from rushlight.memory.recordings.recorder import Recorder
from rushlight.memory.watching.samples import Sampler

__all__ = ["Feed"]

GLANCES = 10  # between two samples


class Feed(threading.Thread):
    """Samples of a recorder, `every` so many seconds, written to a file until `stop`, or until nobody reads it."""

    def __init__(self, recorder: Recorder, file: IO[bytes], every: float):
        super().__init__(name="rushlight-watch", daemon=True)
        self.sampler, self.file, self.every = Sampler(recorder), file, every
        self.over = threading.Event()

    def run(self) -> None:
        """Send until it is over."""
        try:
            while not self.over.is_set():
                self.send()
                for _ in range(GLANCES):
                    if self.over.wait(self.every / GLANCES):
                        break
                    self.sampler.glance()
        except (OSError, ValueError):  # the reader is gone
            self.over.set()

    def send(self) -> None:
        """Send one sample."""
        self.file.write(json.dumps(self.sampler.sample()).encode() + b"\n")
        self.file.flush()

    def stop(self) -> None:
        """Send the last one, and end."""
        self.over.set()
        self.join(2)  # a reader that does not read holds nobody up for longer
        try:
            if not self.is_alive():
                self.send()
                self.file.close()
        except (OSError, ValueError):
            pass
