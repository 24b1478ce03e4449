"""``torch.__config__``: what this library is made of and computes with."""

from __future__ import annotations

import os
import platform

import numpy as np

from rushlight import kernels
from rushlight.version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Versions, and the state of the compiled kernels, in several lines."""
    state = kernels.native_status()["state"]
    return (f"rushlight {__version__} built with:\n  - NumPy {np.__version__}\n  - Python {platform.python_version()}\n"
            f"  - Native kernels: {state}\n")  # fmt: skip


def parallel_info() -> str:
    """How many threads compute, and what the environment says of it."""
    from rushlight.compat.functions import get_num_interop_threads, get_num_threads

    threads = {name: os.environ.get(name, "[not set]") for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    lines = [f"get_num_threads() : {get_num_threads()}", f"get_num_interop_threads() : {get_num_interop_threads()}"]
    return "\n".join([*lines, *(f"{name} : {value}" for name, value in threads.items())]) + "\n"
