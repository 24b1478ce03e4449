"""``torch._utils_internal``: paths of files beside the package, and settings of PyTorch's makers."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight.basics import caller

__all__ = ["deprecated", "get_file_path", "get_file_path_2", "get_writable_path"]

TEST_MASTER_ADDR, TEST_MASTER_PORT = "127.0.0.1", 29500
USE_GLOBAL_DEPS, USE_RTLD_GLOBAL_WITH_LIBTORCH = True, False
MAX_CLOCK_RATE = 1000


def get_file_path(*path_components: str) -> str:
    """A path below the folder in which the package lies."""
    return str(Path(__file__).resolve().parents[4].joinpath(*path_components))


def get_file_path_2(*path_components: str) -> str:
    """A path of its parts."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """`path` where it can be written to, else a new temporary folder."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def signpost_event(category: str, name: str, parameters: dict[str, object]) -> None:
    """Nobody is told."""


def justknobs_check(name: str, default: bool = True) -> bool:
    """A setting of PyTorch's makers: its default."""
    return default


def is_fb_unit_test() -> bool:
    """Whether PyTorch's makers run this: no."""
    return False


def get_torch_source_version() -> str:
    """Where the source is from: nothing is said."""
    return ""


def deprecated() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function `_name`: its module gets `name` beside it, which warns that it is deprecated.

    Raises ValueError for a name that does not begin with an underscore, RuntimeError where the module has the other already.
    """

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        if not func.__name__.startswith("_"):
            raise ValueError(f"@deprecate must decorate a function whose name starts with a single leading underscore, got "
                             f"{func.__name__}")  # fmt: skip
        module, public = sys.modules[func.__module__], func.__name__[1:]
        if hasattr(module, public):
            raise RuntimeError(f"Cannot create alias '{public}' -> symbol already exists in {module.__name__}")

        @functools.wraps(func)
        def warned(*args: object, **kwargs: object) -> object:
            caller.warn(f"{public} is DEPRECATED, please consider using an alternative API(s). ")
            return func(*args, **kwargs)

        head, dot, _ = func.__qualname__.rpartition(".")
        warned.__name__, warned.__qualname__ = public, f"{head}{dot}{public}"
        setattr(module, public, warned)
        return func

    return decorator
