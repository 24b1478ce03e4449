"""The memory of this process as the operating system counts it."""

import os
import resource
import threading
import time
from array import array

__all__ = ["ResidentMemory"]


class ResidentMemory:
    """Resident bytes of this process above those at the start: sampled over time, and their exact peak.

    The peak is the kernel's ``VmHWM``, set back at the start by writing 5 to ``/proc/self/clear_refs``.  Where
    that is refused, the largest sample stands for it.  A context manager: sampling ends with it.
    """

    INTERVAL = 0.002

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._done = threading.Event()
        self._exact = _reset_peak()
        self.base = self._resident()
        self.start = time.perf_counter()
        # Numbers and not objects: what watches should weigh little.
        self._times, self._sizes = array("d"), array("q")
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "ResidentMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def peak(self) -> int:
        """The largest number of resident bytes since the start, above those at the start."""
        if self._exact:
            return _status("VmHWM") - self.base
        return max(self._sizes, default=0)

    @property
    def series(self) -> list[tuple[float, int]]:
        """The samples: seconds since the start, resident bytes above those at the start."""
        return list(zip(self._times, self._sizes))

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def _sample(self) -> None:
        while not self._done.wait(self.INTERVAL):
            self._times.append(self.elapsed())
            self._sizes.append(self._resident() - self.base)

    def _resident(self) -> int:
        try:
            with open("/proc/self/statm", "rb") as file:
                return int(file.read().split()[1]) * self._page
        except OSError:  # no /proc: the peak so far is the best there is
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def _status(key: str) -> int:
    """A field of ``/proc/self/status`` in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)
