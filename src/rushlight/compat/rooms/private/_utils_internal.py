"""``torch._utils_internal``: paths of files beside the package, and settings of PyTorch's makers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path"]

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
