"""The three ways of training, and starting each in a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["MOST_STEPS", "WAYS", "run"]

MOST_STEPS = 44  # of a pass over the data in batches of 32

# Freed blocks of more than 128 KiB go back to the system at once: what is resident is then what is alive, not what once
# was.  Left to itself the C library soon keeps blocks of up to 32 MiB.
EXACT = {"RUSHLIGHT_KEEP_FREED": "0", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072",
         "MALLOC_TOP_PAD_": "0"}  # fmt: skip

WAYS = {
    "adam": "Adam",
    "fused": "Adam in backward",
    "budget": "Adam, budget of 100 MB",
}


def run(way: str, sizes: tuple[int, int, int], on_step: Callable[[int, int, float], None]) -> dict[str, Any]:
    """Train in way ``way`` in a new process and return its figures.  ``sizes``: passes, steps of each at most, and the seed.

    ``on_step(step, steps, loss)`` is called as the steps are done.  Raises RuntimeError if the process fails.
    """
    with training(way, sizes) as process:
        assert process.stdout is not None
        result: dict[str, Any] | None = None
        for line in process.stdout:
            message = json.loads(line)
            if "loss" in message:
                on_step(message["step"], message["steps"], message["loss"])
            else:
                result = message
    if process.returncode or result is None:
        raise RuntimeError(f"rushlight demo: the run {WAYS[way]!r} ended with exit status {process.returncode}")
    return {"way": way, "name": WAYS[way], **result}


@contextlib.contextmanager
def training(way: str, sizes: tuple[int, int, int]) -> Iterator[subprocess.Popen[str]]:
    """The process that trains; in a group of its own, so that Ctrl-C ends it in silence, through this one."""
    command = [sys.executable, "-m", "rushlight.cli.demo.training", way, *map(str, sizes)]
    environment = {**EXACT, **os.environ}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, process_group=0) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
